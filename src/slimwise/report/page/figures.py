"""Figures of the page, each with its image inside."""

import base64
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from slimwise.artifacts.captions import Caption

_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}
_CSS_PIXELS_PER_IN = 96
_SCREEN_SCALE = 1.25
"""A figure is drawn for print, whose type is small on a screen."""
_PNG_SIZE = slice(16, 20)
_PNG_DENSITY = re.compile(rb"pHYs(.{4})", re.DOTALL)
_IN_PER_M = 39.37
_SVG_WIDTH = re.compile(rb'<svg[^>]* width="([\d.]+)pt"')
_POINTS_PER_IN = 72
_PAPER_NUMBERS = {
    "figure_1b": "Figure 1b",
    "coverage": "Figure 2",
    "figure_3": "Figure 3",
    "throughput": "Figure 4",
    "figure_5": "Figure 5",
}


@dataclass(frozen=True)
class PageFigure:
    """Title and text of the caption, alternative text, the image as a data URI and its width."""

    anchor: str
    title: str
    text: str
    alternative: str
    image: str
    width_px: int


def page_figure(name: str, caption: Caption, image: Path) -> PageFigure:
    """The figure, numbered as in the paper where it is one of the paper's."""
    content = image.read_bytes()
    number = _PAPER_NUMBERS.get(name)
    encoded = base64.b64encode(content).decode()
    return PageFigure(
        anchor=f"figure-{name}",
        title=f"{number}. {caption.title}" if number else caption.title,
        text=caption.text,
        alternative=caption.alternative,
        image=f"data:{_TYPES[image.suffix]};base64,{encoded}",
        width_px=round(_width_in(content) * _CSS_PIXELS_PER_IN * _SCREEN_SCALE),
    )


def _width_in(content: bytes) -> float:
    """Printed width of a PNG, from its pixels and density, or of an SVG as matplotlib writes it."""
    vector = _SVG_WIDTH.search(content)
    if vector:
        return float(vector[1]) / _POINTS_PER_IN
    (pixels,) = struct.unpack(">I", content[_PNG_SIZE])
    density = _PNG_DENSITY.search(content)
    assert density is not None, "figures say how large they are printed"
    (density_per_m,) = struct.unpack(">I", density[1])
    return pixels / (density_per_m / _IN_PER_M)
