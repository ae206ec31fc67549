import json
from pathlib import Path

import papermill
import pytest

FOLDER = Path(__file__).parents[3] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_without_outputs(notebook):
    cells = json.loads(notebook.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_reads_a_study_and_writes_nothing_to_it(notebook, tabulated, tmp_path):
    before = sorted(tabulated.root.rglob("*"))
    parameters = {"study": "mini", "results": str(tmp_path)}
    executed = papermill.execute_notebook(
        notebook, tmp_path / "executed.ipynb", parameters, progress_bar=False, cwd=FOLDER
    )
    assert any(
        "image/png" in output.get("data", {})
        for cell in executed.cells
        for output in cell.get("outputs", ())
    )
    assert sorted(tabulated.root.rglob("*")) == before
