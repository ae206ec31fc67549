"""How tables and figures look."""

from typing import Literal, Self

from pydantic import Field, model_validator

from slimwise.stage_config import StageConfig

PAGE_FORMATS = ("svg", "png")
"""What a page shows of a figure: the first of these that was written."""


class ReportConfig(StageConfig):
    """Digits, intervals, the target of throughput, and file formats."""

    table_digits: int = Field(
        default=6, ge=3, le=17, description="Significant digits of numbers in tables."
    )
    bootstrap_resamples: int = Field(
        default=2000, ge=100, description="Resamples behind each interval in tables 1 to 4."
    )
    bootstrap_seed: int = Field(default=0, ge=0, description="Seed of the resampled items.")
    confidence: float = Field(
        default=0.95, gt=0, lt=1, description="Share of resamples within an interval."
    )
    target_tokens_per_s_per_user: float = Field(
        default=50.0,
        gt=0,
        description="Speed at which throughput is compared, tokens/s/user. SlimWise, figure 4.",
    )
    figure_formats: tuple[Literal["png", "pdf", "svg"], ...] = Field(
        default=("png", "pdf"), min_length=1, description="File formats of each figure."
    )
    dpi: int = Field(default=150, ge=50, description="Dots per inch of raster figures.")

    @model_validator(mode="after")
    def _the_page_has_figures(self) -> Self:
        if not set(PAGE_FORMATS) & set(self.figure_formats):
            raise ValueError(
                f"report.figure_formats = {', '.join(self.figure_formats)}: the report's page "
                f"shows {' or '.join(PAGE_FORMATS)}, so add one of them"
            )
        return self
