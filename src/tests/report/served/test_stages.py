"""Tables and figures of a made-up sweep: every step is a known time, so every rate is known."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from slimwise.artifacts.captions import read_captions
from slimwise.artifacts.tables import read_table, write_table
from slimwise.paths import PAPER_THROUGHPUT
from slimwise.report.config import ReportConfig
from slimwise.report.measured.columns import RATIO_COLUMNS
from slimwise.report.served.columns import SWEPT_COLUMNS, SWEPT_PREFILL_COLUMNS, TRADE_OFF_COLUMNS
from slimwise.report.served.figures import draw_throughput_figures, draw_trade_off
from slimwise.report.served.tables import write_throughput_tables
from slimwise.report.tables.columns import ACCURACY_COLUMNS

CONFIG = ReportConfig(figure_formats=("svg",))
ORIGIN = {"commit": "abc1234", "date": "2026-11-30T07:00:00+00:00", "hardware": "CPU, 2 cores"}
DECODERS = {
    ("full", "full", "full", None, 64): 1.0,
    ("reap-m32", "reap-m32", "pruned", None, 32): 0.5,
    ("reap-m32-colocated", "reap-m32", "slimwise", "reap-m32", 32): 0.6,
}
"""Milliseconds of a step per sequence, by server, decoder, mode, pool and kept experts."""
BATCHES = (10, 40)


def _row(kind: str, decoder: tuple[str, str, str, str | None, int], **facts: Any) -> dict[str, Any]:
    server, name, mode, pool, num_kept = decoder
    return {
        "point": f"{server}-{kind}-{facts['batch_offered']}",
        "kind": kind,
        "server": server,
        "decoder": name,
        "backbone": "mini",
        "deployment": "disaggregated" if server.endswith("-disaggregated") else "colocated",
        "mode": mode,
        "pool": pool,
        "num_kept": num_kept,
        "routing": "real",
        "kernels": "default",
        "vllm": "0.32.0",
        "num_requests": facts["batch_offered"],
        "prompt_tokens": 64,
        "output_tokens": 96,
        **facts,
        **ORIGIN,
    }


def _decode_row(decoder: tuple[str, str, str, str | None, int], batch: int) -> dict[str, Any]:
    step_ms = DECODERS[decoder] * batch
    measured = dict.fromkeys(("ttft_ms", "ttft_p99_ms", "tpot_ms", "tpot_p99_ms", "steady_s"), 1.0)
    counts = dict.fromkeys(("gpus", "kv_cache_tokens", "kv_cache_share", "preemptions"), 1)
    return _row(
        "decode",
        decoder,
        batch_offered=batch,
        batch_running=float(batch),
        context_tokens=112,
        step_ms=step_ms,
        tokens_per_s_per_user=1e3 / step_ms,
        tokens_per_s_per_gpu=batch * 1e3 / step_ms,
        output_tokens_per_s=batch * 900 / step_ms,
        faults="",
        **measured,
        **counts,
    )


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    """Two loads of each decoder, and prefill."""
    decode = [_decode_row(decoder, batch) for decoder in DECODERS for batch in BATCHES]
    prefill = [
        _row("prefill", decoder, batch_offered=8, prefill_tokens_per_s=5000.0)
        for decoder in DECODERS
    ]
    return decode + prefill


@pytest.fixture
def written(tmp_path, rows):
    """Writes the tables of the rows at a target and says where."""

    def write(target: float) -> Path:
        path, accuracy = tmp_path / "rows.jsonl", tmp_path / "accuracy.csv"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        answers = [_accuracy("none", 64, "full"), _accuracy("reap", 32, "pruned")]
        answers += [_accuracy("reap", 32, "reverse"), _accuracy("ean", 32, "pruned")]
        answers += [_accuracy("reap", 32, "pruned") | {"deployment": "disaggregated"}]
        write_table(accuracy, pd.DataFrame(answers), ACCURACY_COLUMNS, digits=6)
        config = CONFIG.model_copy(update={"target_tokens_per_s_per_user": target})
        out = tmp_path / "80_tables"
        write_throughput_tables(
            config, rows=[path], accuracy=accuracy, paper=PAPER_THROUGHPUT, out=out
        )
        draw_throughput_figures(config, tables=out, out=tmp_path / "80_figures")
        return out

    return write


def _accuracy(criterion: str, num_kept: int, mode: str) -> dict[str, Any]:
    words = {
        "backbone": "mini",
        "criterion": criterion,
        "num_kept": num_kept,
        "mode": mode,
        "deployment": "colocated",
        "distilled": "none",
        "decoding": "sampled",
        "benchmark": "mini_maths",
    }
    numbers = dict.fromkeys(ACCURACY_COLUMNS[len(words) :], 0.5)
    return {**words, **numbers, **ORIGIN}


def test_throughput_at_the_target_lies_between_the_two_loads(written):
    ratios = read_table(written(50) / "ratio_at_target.csv", RATIO_COLUMNS).set_index("engine")
    # Every decoder makes as many tokens at any batch, so that interpolation gives the same again.
    assert ratios["full_tokens_per_s_per_gpu"].to_list() == [1000, 1000]
    assert ratios.loc["reap-m32", "ratio"] == 2
    assert ratios.loc["reap-m32-colocated", "ratio"] == pytest.approx(1 / 0.6, rel=1e-4)
    assert ratios.loc["reap-m32", "slower_batch"] == 40
    assert ratios.loc["reap-m32", "weights"] == "exported"
    assert ratios.loc["reap-m32-colocated", "weights"] == "full, masked"


APART = ("reap-m32-disaggregated", "reap-m32", "pruned", None, 32)
FULL_APART = ("full-disaggregated", "full", "full", None, 64)


@pytest.mark.parametrize(
    ("full_is_apart", "ratio", "told"), [(False, 1.25, "colocated"), (True, 2.5, "disaggregated")]
)
def test_a_disaggregated_decoder_stands_beside_a_full_model_like_it(
    written, rows, monkeypatch, full_is_apart, ratio, told
):
    for decoder, step_ms in {APART: 0.8, FULL_APART: 2.0}.items():
        monkeypatch.setitem(DECODERS, decoder, step_ms)
    added = [APART, FULL_APART] if full_is_apart else [APART]
    rows += [_decode_row(decoder, batch) for decoder in added for batch in BATCHES]
    rows[:] = [row for row in rows if row["server"] != "reap-m32"]
    tables = written(45)
    ratios = read_table(tables / "ratio_at_target.csv", RATIO_COLUMNS).set_index("engine")
    assert ratios.loc["reap-m32-disaggregated", "ratio"] == ratio
    assert ratios.loc["reap-m32-colocated", "full_engine"] == "full"
    assert f"with the {told} full model." in (tables / "ratio_at_target.md").read_text()
    both = read_table(tables / "accuracy_and_throughput.csv", TRADE_OFF_COLUMNS)
    assert both.set_index("engine").loc["reap-m32-disaggregated", "ratio"] == ratio


def test_accuracy_stands_beside_the_decoder_on_its_own_checkpoint(written):
    both = read_table(written(50) / "accuracy_and_throughput.csv", TRADE_OFF_COLUMNS)
    assert both["engine"].to_list() == ["full", "reap-m32"]
    assert both["mode"].to_list() == ["full", "pruned"]
    assert both["ratio"].to_list() == [1, 2]


def _trade_off(criteria: list[str]) -> pd.DataFrame:
    """Every arm of a pool of each criterion, and the full model's row."""
    arms = [("pruned", "none"), *(("slimwise", rule) for rule in ("none", "uniform", "zero"))]
    names = ["criterion", "num_kept", "mode", "distilled"]
    pools = [(criterion, 32, *arm) for criterion in criteria for arm in arms]
    frame = pd.DataFrame([("none", 64, "full", "none"), *pools], columns=names)
    numbers = {"accuracy_mean": 0.5, "accuracy_std": 0.1, "tokens_per_s_per_gpu": 1000.0}
    return frame.assign(
        benchmark="mini_maths", target_tokens_per_s_per_user=50, **numbers, decoding="sampled"
    )


def test_the_trade_off_names_criteria_and_counts_experts_once_a_decoder():
    figure = draw_trade_off(_trade_off(["reap", "ean", "mass"]))
    figure.draw_without_rendering()
    (legend,) = figure.legends
    arms = ["full", "pruned", "slimwise", "slimwise + distilled", "slimwise + distilled, s = 0"]
    assert [text.get_text() for text in legend.get_texts()] == [*arms, "REAP", "EAN", "Mass"]
    assert 0 < legend.get_window_extent().x0 < legend.get_window_extent().x1 < figure.bbox.x1
    counts = [text.get_text() for text in figure.axes[0].texts]
    # Three criteria, each as it is and distilled by two rules.
    assert counts == ["64", *["32"] * 9]
    assert "50 tokens/s for each user" in figure.get_supxlabel()


def test_every_decoder_has_its_loads_and_its_prefill(written):
    tables = written(50)
    served = read_table(tables / "throughput.csv", SWEPT_COLUMNS)
    assert served["engine"].unique().tolist() == ["full", "reap-m32-colocated", "reap-m32"]
    assert served["batch_offered"].to_list() == [10, 40] * 3
    prefill = read_table(tables / "prefill_throughput.csv", SWEPT_PREFILL_COLUMNS)
    assert prefill["num_kept"].to_list() == [64, 32, 32]


def test_a_row_with_faults_is_in_no_ratio(written, rows):
    rows[3]["faults"] = "3 preemptions"
    tables = written(50)
    assert len(read_table(tables / "throughput.csv", SWEPT_COLUMNS)) == 6
    ratios = read_table(tables / "ratio_at_target.csv", RATIO_COLUMNS)
    assert ratios["engine"].to_list() == ["reap-m32-colocated"]


def test_a_target_that_no_load_reaches_gives_empty_tables_and_a_note(written):
    tables = written(5000)
    assert read_table(tables / "ratio_at_target.csv", RATIO_COLUMNS).empty
    assert read_table(tables / "accuracy_and_throughput.csv", TRADE_OFF_COLUMNS).empty
    figure = (tables.parent / "80_figures" / "figure_1b.svg").read_text()
    assert "no load reaches the target" in figure


def test_a_sweep_whose_every_row_has_faults_is_drawn_as_a_note(written, rows):
    for row in rows:
        row["faults"] = "3 preemptions"
    figure = (written(50).parent / "80_figures" / "throughput.svg").read_text()
    assert "none without faults" in figure


@pytest.mark.parametrize(("key", "value"), [("decoder", "full"), ("kind", "decode")])
def test_a_sweep_of_the_full_model_alone_or_without_prefill_is_written(written, rows, key, value):
    rows[:] = [row for row in rows if row[key] == value]
    tables = written(50)
    assert len(read_table(tables / "throughput.csv", SWEPT_COLUMNS)) == 2 * len(
        {row["server"] for row in rows}
    )
    assert (tables.parent / "80_figures" / "prefill_throughput.svg").is_file()


def test_every_figure_has_a_caption(written):
    folder = written(50).parent / "80_figures"
    captions = read_captions(folder / "throughput_captions.json")
    assert sorted(captions) == sorted(path.stem for path in folder.glob("*.svg"))
    alternative = captions["figure_1b"].alternative
    assert "full, mini maths: 0.500 at 1,000; REAP 32 pruned, mini maths: 0.500" in alternative
