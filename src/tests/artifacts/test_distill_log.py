import pytest

from slimwise.artifacts.distill_log import LOG_COLUMNS, read_distill_log
from slimwise.errors import ArtifactError

HEADER = ",".join(LOG_COLUMNS)


def test_steps_are_numbers(tmp_path):
    path = tmp_path / "distill_log.csv"
    path.write_text(f"{HEADER}\n0,0.9,0.5,0.8,2.000e-04,1104,620,1.6\n1,0.8,0.4,0.8,4e-04,1,1,2\n")
    log = read_distill_log(path)
    assert log["loss"].tolist() == [0.9, 0.8]
    assert log.loc[0, "learning_rate"] == 2e-4


@pytest.mark.parametrize("text", [None, "step,loss\n0,1\n", f"{HEADER}\n0,nothing,1,1,1,1,1,1\n"])
def test_what_is_no_log_is_refused(tmp_path, text):
    path = tmp_path / "distill_log.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ArtifactError, match="Delete its folder"):
        read_distill_log(path)
