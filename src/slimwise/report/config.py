"""How tables and figures look."""

from typing import Literal

from pydantic import Field

from slimwise.stage_config import StageConfig


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
