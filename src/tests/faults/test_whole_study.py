"""The study after all that was done to it."""

import pytest

from .scratch_clone import FOLDER_NAME

pytestmark = pytest.mark.faults


def test_the_study_ends_in_a_folder_of_any_name_and_settles(clone, fault):
    expected = "the whole study finishes, and then has nothing to do"
    with fault("a path with spaces and a letter that is not ASCII", expected) as row:
        assert FOLDER_NAME in str(clone.root)
        row.mended_by(clone.run())
        row.message = clone.run("--dry-run").line("Nothing to be done")
        row.seen = "finished, with every fault before it mended"
