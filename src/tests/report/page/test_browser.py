"""The page as a reader meets it, in a real browser."""

import pytest

from .chromium import PROGRAM, browser_tab

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine"),
]

PHONE_PX, DESKTOP_PX = 390, 1280
_LEAST_CONTRAST = 4.5
"""WCAG 2.2, 1.4.3."""

_CONTRASTS = """(() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => channels(colour).slice(0, 3)
    .map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
  const ground = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return channels(colour)[3] === 0 ? ground(element.parentElement) : colour;
  };
  return [...document.querySelectorAll("h1, h2, p, a, dt, dd, th, td, small, figcaption, span")]
    .filter((element) => element.checkVisibility() && element.textContent.trim())
    .map((element) => {
      const pair = [light(getComputedStyle(element).color), light(ground(element))];
      return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    });
})()"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser_tab(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.mark.parametrize("width_px", [PHONE_PX, DESKTOP_PX])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_is_readable(tab, page, width_px, scheme):
    tab.open(page, width_px=width_px, scheme=scheme)
    assert tab.complaints == []
    assert tab.run("document.documentElement.scrollWidth") <= width_px
    assert tab.run("[...document.images].every((image) => image.complete && image.naturalWidth)")
    contrasts = tab.run(_CONTRASTS)
    assert len(contrasts) > 100
    assert min(contrasts) >= _LEAST_CONTRAST
    darkness = tab.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] < 128")
    assert darkness == (scheme == "dark")


def test_every_figure_tells_what_it_shows(tab, page):
    tab.open(page, width_px=DESKTOP_PX)
    told = tab.run("[...document.images].map((image) => image.alt)")
    assert len(told) >= 10
    assert all(len(text) > 20 for text in told)


def test_a_table_sorts_by_key_and_by_click(tab, page):
    tab.open(page, width_px=DESKTOP_PX)
    column = "[...document.querySelectorAll('#table_1 .grid:nth-of-type(1) tbody tr')]"
    shown = f"{column}.map((row) => row.cells[2].textContent)"
    heading = "document.querySelectorAll('#table_1 thead th')[2]"
    as_written = tab.run(shown)
    tab.run(f"{heading}.firstElementChild.focus()")
    tab.press("Enter", text="\r")
    assert tab.run(f"{heading}.ariaSort") == "ascending"
    assert tab.run(shown) == sorted(as_written)
    tab.run(f"{heading}.firstElementChild.click()")
    assert tab.run(f"{heading}.ariaSort") == "descending"
    assert tab.run(shown) == sorted(as_written, reverse=True)
    tab.run(f"{heading}.firstElementChild.click()")
    assert tab.run(shown) == as_written
    assert as_written != sorted(as_written)


def test_a_number_opens_the_records_that_it_came_from(tab, page):
    tab.open(page, width_px=PHONE_PX)
    opened = "document.querySelector('.origin:popover-open')"
    tab.run("document.querySelectorAll('#table_1 tbody td')[1].click()")
    value = tab.run("document.querySelectorAll('#table_1 tbody td')[1].textContent")
    told = tab.run(f"{opened}.textContent")
    assert value in told
    for words in ("70_evaluation/full/grades.parquet", "abc1234", "CPU, 2 cores"):
        assert words in told
    assert tab.run(f"{opened}.getBoundingClientRect().right") <= PHONE_PX
    tab.press("Escape")
    assert tab.run(f"{opened} === null")
    tab.run("document.querySelector('#table_1 tbody th button').focus()")
    tab.press("Enter", text="\r")
    assert tab.run(f"{opened} !== null")


def test_another_quantity_takes_the_place_of_the_first(tab, page):
    tab.open(page, width_px=DESKTOP_PX)
    grids = "[...document.querySelectorAll('#table_1 .grid')]"
    visible = f"{grids}.map((grid) => grid.checkVisibility())"
    assert tab.run(visible) == [True, False, False, False]
    tab.run("document.querySelector('#table_1 input[value=\"3\"]').click()")
    assert tab.run(visible) == [False, False, True, False]
