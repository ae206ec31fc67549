import pytest

from slimwise.config import parse_slice
from slimwise.errors import ConfigError
from slimwise.report.config import ReportConfig


def test_formats_that_no_page_shows_are_refused():
    with pytest.raises(ConfigError, match=r"figure_formats = pdf: .* shows svg or png, so add"):
        parse_slice(ReportConfig, '{"figure_formats": ["pdf"]}')
    assert parse_slice(ReportConfig, '{"figure_formats": ["pdf", "svg"]}')
