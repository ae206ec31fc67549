import re

import pandas as pd
import pytest

from slimwise.artifacts.captions import Caption, write_captions
from slimwise.artifacts.coverage_table import COVERAGE_COLUMNS
from slimwise.artifacts.parquet_rows import read_rows_provenance
from slimwise.artifacts.tables import read_table, write_table
from slimwise.errors import ArtifactError
from slimwise.report.page.claim import claim
from slimwise.report.page.origins import Source, Verdicts
from slimwise.report.page.paper import table_beside_paper
from slimwise.report.page.run import write_report
from slimwise.report.page.tables import plain_table
from slimwise.report.served.columns import SWEPT_COLUMNS, TRADE_OFF_COLUMNS
from slimwise.report.tables.columns import ACCURACY_COLUMNS, COMPARISON_COLUMNS

from ..conftest import PROVENANCE
from .conftest import PAPER, record_products


@pytest.fixture
def accuracies(finished) -> pd.DataFrame:
    return read_table(finished.table("accuracy"), ACCURACY_COLUMNS)


def test_the_claim_is_of_the_leading_criterion_at_half(accuracies):
    first, second = claim(accuracies)
    rows = accuracies[(accuracies["num_kept"] == 32) & (accuracies["criterion"] == "reap")]
    sampled = rows[rows["decoding"] == "sampled"]
    means = sampled.groupby(["mode", "distilled"])["accuracy_mean"].mean()
    assert first.startswith("With a full prefill, decoding with 32 of 64 experts (REAP) gets ")
    assert f"gets {100 * means['slimwise', 'none']:.1f} % of the answers right" in first
    assert f"it is {100 * means['pruned', 'none']:.1f} % if prefill is pruned too" in first
    assert f"the same 32 experts get {100 * means['slimwise', 'uniform']:.1f} %." in second
    assert second.endswith("Means over mini maths and mini tools.")


def test_a_claim_says_nothing_of_what_was_not_measured(accuracies):
    training_free = accuracies[accuracies["distilled"] == "none"]
    assert "Distilled" not in " ".join(claim(training_free))
    assert "prefill" not in " ".join(claim(accuracies[accuracies["criterion"] == "none"]))


def test_a_cross_check_is_shown_and_refused_without_its_recorded_twin(finished):
    rows = pd.DataFrame([{"benchmark": "gsm8k", "accuracy": 1.0}])
    origin = {"commit": "abc1234", "date": PROVENANCE.date, "hardware": "CPU"}
    path = finished.table("lm_eval_cross_check")
    write_table(path, rows.assign(**origin), ("benchmark", "accuracy"), digits=4)
    record_products(finished)
    write_report(finished.root, paper=PAPER, out=finished.report)
    assert "The full model beside lm-eval" in finished.report.read_text(encoding="utf-8")
    twin = path.with_suffix(".md")
    text = twin.read_text()
    twin.unlink()
    record_products(finished)
    twin.write_text(text)
    with pytest.raises(ArtifactError, match=r"lm_eval_cross_check\.md is not the file that"):
        write_report(finished.root, paper=PAPER, out=finished.report)


def test_the_page_asks_for_no_other_file(page):
    text = page.read_text(encoding="utf-8")
    assert page.stat().st_size < 3e6
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", text)
    assert not re.findall(r"url\(|@import", text)
    assert "default-src 'none'" in text


def test_the_page_shows_every_table_and_figure_of_the_study(page):
    text = page.read_text(encoding="utf-8")
    titles = re.findall(r"<h3>(Table \d)\.", text)
    assert titles == ["Table 1", "Table 2", "Table 3", "Table 4"]
    shown = set(re.findall(r'<figure id="figure-(\w+)"', text))
    assert {"figure_3", "figure_5", "expert_load_by_component", "output_lengths"} < shown
    assert "coverage" not in shown
    assert len(re.findall(r'<img [^>]*alt="[^"]{20,}"', text)) == len(shown)


def test_a_file_of_another_run_is_no_part_of_the_study(finished):
    captions = {"stale": Caption("Stale", "Of another run.", "Nothing of this study.")}
    write_captions(finished.figure("old_captions", "json"), captions, PROVENANCE)
    write_report(finished.root, paper=PAPER, out=finished.report)
    assert "Of another run." not in finished.report.read_text(encoding="utf-8")


def test_a_table_of_another_stage_brings_its_note_and_its_origin(finished):
    origin = {"commit": "def5678", "date": "2026-11-29T07:00:00+00:00", "hardware": "A GPU"}
    rows = [dict.fromkeys(COVERAGE_COLUMNS, "x") | {"batch": batch} | origin for batch in (1, 64)]
    table = finished.table("coverage")
    write_table(table, pd.DataFrame(rows), COVERAGE_COLUMNS, digits=6, note="Counted in decode.")
    record_products(finished)
    write_report(finished.root, paper=PAPER, out=finished.report)
    text = finished.report.read_text(encoding="utf-8")
    assert "Share of the experts that a decode step reads" in text
    assert "Counted in decode." in text
    assert '<a href="../80_tables/coverage.csv">' in text
    assert "<dd><code>def5678</code></dd>" in text


def test_a_file_of_many_columns_is_shown_in_few_and_in_the_words_of_the_page(finished):
    same = dict.fromkeys(TRADE_OFF_COLUMNS, "x") | {"benchmark": "mini_maths"}
    uses = (("none", "sampled"), ("reap", "sampled"), ("reap", "greedy"))
    rows = [same | {"criterion": criterion, "decoding": how} for criterion, how in uses]
    both = _shown_table(finished, "accuracy_and_throughput", rows, TRADE_OFF_COLUMNS)
    assert [">full<" in both, ">REAP<" in both, "greedy" in both] == [True, True, False]
    assert "benchmark: mini maths" in both
    loads = [dict.fromkeys(SWEPT_COLUMNS, "x") | {"tokens_per_s_per_gpu": rate} for rate in (1, 2)]
    swept = _shown_table(finished, "throughput", loads, SWEPT_COLUMNS)
    assert ">tokens/s/GPU</button>" in swept
    assert "kv cache" not in swept
    assert re.findall(r'class="notes">(?!backbone)(.*)<', swept) == ["Rates are means."]


def _shown_table(paths, name, rows, columns) -> str:
    """The part of the page that shows a table of these rows, of which others say more."""
    frame = pd.DataFrame(rows).assign(commit="abc1234", date=PROVENANCE.date, hardware="CPU")
    twin = "At 50.\n\n| a |\n| --- |\n| 1 |\n\nCommit abc1234; CPU.\n"
    write_table(paths.table(name), frame, columns, digits=6, twin=twin, note="Rates are means.")
    record_products(paths)
    write_report(paths.root, paper=PAPER, out=paths.report)
    text = paths.report.read_text(encoding="utf-8")
    return text.partition(f'id="table-{name}"')[2].partition('<div class="table"')[0]


def test_a_table_that_was_changed_is_refused(finished):
    with finished.table("table_2").open("a") as table:
        table.write("\n")
    with pytest.raises(ArtifactError, match=r"table_2\.csv is not the file"):
        write_report(finished.root, paper=PAPER, out=finished.report)
    assert not finished.report.exists()


def test_a_study_without_a_record_is_refused(finished):
    finished.study_record.unlink()
    with pytest.raises(ArtifactError, match=r"study\.json"):
        write_report(finished.root, paper=PAPER, out=finished.report)


def test_what_a_study_did_not_draw_is_left_out(finished):
    finished.figure("figure_5").unlink()
    record_products(finished)
    write_report(finished.root, paper=PAPER, out=finished.report)
    text = finished.report.read_text(encoding="utf-8")
    assert "figure-figure_3" in text
    assert "figure-figure_5" not in text


def test_a_line_comes_from_its_verdicts_its_answers_and_its_keep_set(finished, accuracies):
    answers = finished.samples("reap-m32")
    answers.write_bytes(finished.grades("reap-m32").read_bytes())
    is_line = (accuracies["criterion"] == "reap") & (accuracies["mode"] == "pruned")
    row = accuracies[is_line & (accuracies["num_kept"] == 32)].iloc[0].to_dict()
    origin = Verdicts(finished).origin(row)
    assert origin.title == "REAP 32, pruned"
    files = [finished.grades("reap-m32"), answers, finished.keep_set("reap", 32)]
    assert [source.path for source in origin.sources] == files
    assert origin.sources[0].provenance == read_rows_provenance(files[0])


def test_verdicts_of_another_date_are_no_origin(finished, accuracies):
    row = accuracies.iloc[0].to_dict() | {"date": "2026-11-29T00:00:00+00:00"}
    assert Verdicts(finished).origin(row).sources == ()


def test_a_configuration_is_what_the_command_was_given(tmp_path):
    command = "slimwise grade-answers --config '{\"workers\": 1}' --samples a.parquet"
    given = PROVENANCE.__class__("c", "d", "h", {}, command)
    other = PROVENANCE.__class__("c", "d", "h", {}, command.replace("1", "2"))
    digests = {Source("Verdicts", tmp_path, each).configuration for each in (given, other)}
    assert {len(digest) for digest in digests} == {16}
    assert len(digests) == 2
    assert Source("Verdicts", tmp_path, PROVENANCE).configuration == ""


def test_numbers_of_a_column_have_equally_many_decimals():
    cells = pd.DataFrame(
        {
            "backbone": ["mini"] * 2,
            "batch": ["1", "64"],
            "share": ["0.0625", "1"],
            "ms": ["", "58.864"],
            "faults": ["", ""],
        }
    )
    table = plain_table("anchor", "Title", cells, [None, None])
    (grid,) = table.grids
    assert [column.name for column in grid.columns] == ["batch", "share", "ms"]
    assert [cell.value for cell in grid.lines[0].cells] == ["1", "0.062", ""]
    assert [cell.value for cell in grid.lines[1].cells] == ["64", "1.000", "58.86"]
    assert table.notes == ("backbone: mini.",)


def test_another_backbone_stands_beside_the_papers_directions(finished):
    rows = read_table(finished.table("table_4"), COMPARISON_COLUMNS)
    (grid,) = table_beside_paper(rows, PAPER, Verdicts(finished)).grids
    lines = [[cell.value for cell in line.cells] for line in grid.lines]
    is_pruned = (rows["criterion"] == "reap") & (rows["mode"] == "pruned")
    pruned = rows[is_pruned & (rows["num_kept"] == 32)]
    ours = f"{pruned['accuracy_difference'].mean():+.3f}"
    assert ["REAP 50%", "pruned", "Qwen3.6-35B-A3B, GSM8K", "0.949", "-0.013", ours] in lines


def test_the_same_backbone_stands_beside_the_papers_cells(finished):
    rows = read_table(finished.table("table_4"), COMPARISON_COLUMNS)
    printed = rows.head(1).assign(paper_accuracy=0.9)
    both = pd.concat([printed, rows[1:]])
    (grid,) = table_beside_paper(both, PAPER, Verdicts(finished)).grids
    (line,) = grid.lines
    values = dict(zip([column.name for column in grid.columns], line.cells, strict=True))
    assert values["accuracy, ours"].value == f"{rows['accuracy_mean'].iloc[0]:.4g}"
    assert values["accuracy, paper"].value == "0.9"
    assert values["p50, paper"].value == ""
