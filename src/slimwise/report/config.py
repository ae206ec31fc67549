"""How tables and figures look."""

from typing import Literal

from pydantic import Field

from slimwise.stage_config import StageConfig


class ReportConfig(StageConfig):
    table_digits: int = Field(
        default=6, ge=3, le=17, description="Significant digits of numbers in tables."
    )
    figure_formats: tuple[Literal["png", "pdf", "svg"], ...] = Field(
        default=("png", "pdf"), min_length=1, description="File formats of each figure."
    )
    dpi: int = Field(default=150, ge=50, description="Dots per inch of raster figures.")
