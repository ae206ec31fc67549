"""Servers under load, whose every step is a known time, so that every ratio is known."""

import json
from pathlib import Path
from typing import Any

import pytest

from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.paths import MEASURED_STUDY, PAPER_THROUGHPUT, StudyPaths
from slimwise.report.config import ReportConfig
from slimwise.report.measured.columns import SERVED_COLUMNS
from slimwise.report.measured.figures.throughput import draw_throughput
from slimwise.report.measured.served import (
    served_prefill_table,
    served_ratio_table,
    served_table,
)
from slimwise.report.measured.tables import write_measured_tables

BACKBONE = "Qwen3.6-35B-A3B"
FULL, MASKED, EXPORTED = ("full", None, 256), ("slimwise", "m128", 128), ("pruned", None, 128)
STEPS_MS = {
    ("full", FULL): {10: 10.0, 30: 30.0},
    ("pools", FULL): {10: 12.0, 30: 36.0},
    ("pools", MASKED): {10: 10.0, 30: 20.0},
    ("m128", EXPORTED): {10: 8.0, 30: 20.0},
}
"""Of each batch, by server and mode, pool and kept experts."""


def row(server: str, decoder: tuple[str, str | None, int], batch: int, **facts: Any) -> dict:
    mode, pool, num_kept = decoder
    told = {**dict.fromkeys(SERVED_COLUMNS, 1), **facts}
    return {
        **told,
        "server": server,
        "backbone": BACKBONE,
        "deployment": "colocated",
        "mode": mode,
        "pool": pool,
        "num_kept": num_kept,
        "routing": facts.get("routing", "uniform"),
        "kernels": "default",
        "batch_offered": batch,
        "batch_running": batch,
        "faults": "",
        "commit": "abc1234",
        "date": "2026-11-30",
        "hardware": "one GPU",
    }


def decode_rows(routing: str) -> list[dict]:
    return [
        row(
            server,
            decoder,
            batch,
            kind="decode",
            routing=routing,
            step_ms=step_ms,
            tokens_per_s_per_user=1e3 / step_ms,
            tokens_per_s_per_gpu=batch * 1e3 / step_ms,
        )
        for (server, decoder), steps in STEPS_MS.items()
        for batch, step_ms in steps.items()
    ]


@pytest.fixture
def rows() -> list[dict]:
    prefill = [
        row(server, decoder, 64, kind="prefill", prefill_tokens_per_s=1e4)
        for server, decoder in STEPS_MS
    ]
    return [*decode_rows("skewed"), *prefill, *decode_rows("uniform")]


def test_each_server_pool_and_load_has_a_row_uniform_routing_first(rows):
    table = served_table(rows)
    assert tuple(table) == (*SERVED_COLUMNS, *PROVENANCE_COLUMNS)
    at_ten = table[table["batch_offered"] == 10]
    assert at_ten["routing"].to_list() == ["uniform"] * 4 + ["skewed"] * 4
    shown = at_ten[["engine", "weights", "num_kept"]].iloc[:4]
    assert shown.to_numpy().tolist() == [
        ["full", "full", 256],
        ["pools", "full", 256],
        ["pools", "full, masked", 128],
        ["m128", "exported", 128],
    ]
    assert at_ten["pool"].iloc[2] == "m128"
    assert served_prefill_table(rows)["num_kept"].to_list() == [256, 256, 128, 128]


def test_decoders_stand_beside_the_full_model_of_a_server_without_pools(rows):
    table = served_ratio_table(served_table(rows), target=50.0, paper=PAPER_THROUGHPUT)
    # A step of 20 ms holds 20 sequences of the full model and 30 of the others.
    shown = table[["engine", "full_engine", "routing", "ratio"]].to_numpy().tolist()
    assert shown == [
        [engine, "full", routing, pytest.approx(1.5)]
        for routing in ("uniform", "skewed")
        for engine in ("pools", "m128")
    ]
    neighbours = table[["full_faster_batch", "full_slower_batch"]].drop_duplicates()
    assert neighbours.to_numpy().tolist() == [[10, 30]]
    # The paper's 1.81 is of two servers, these checkpoints have one.
    assert table["paper_ratio"].iloc[0] == 1.72
    assert table.loc[table["weights"] == "exported", "paper_ratio"].isna().all()


def test_a_server_with_pools_has_the_full_model_where_no_other_does(rows):
    pools = served_table(rows).query("engine == 'pools'")
    table = served_ratio_table(pools, target=50.0, paper=PAPER_THROUGHPUT)
    # A step of 20 ms holds 20 * 10 / 12 sequences of the full model there.
    assert table["ratio"].to_list() == pytest.approx([1.8, 1.8])


def test_a_pool_is_not_compared_with_two_servers_where_its_own_has_the_full_model(rows):
    alone = [
        {**row, "deployment": "disaggregated"} if row["server"] == "full" else row for row in rows
    ]
    table = served_ratio_table(served_table(alone), target=50.0, paper=PAPER_THROUGHPUT)
    assert set(table["full_engine"]) == {"pools"}


def test_two_servers_have_a_panel_of_their_own(rows):
    apart = [
        {**row, "deployment": "disaggregated"} if row["routing"] == "skewed" else row
        for row in rows
        if row["server"] != "pools"
    ]
    served = served_table(apart)
    ratios = served_ratio_table(served, target=50.0, paper=PAPER_THROUGHPUT)
    panels = draw_throughput(served, ratios, ("routing", "deployment")).axes
    assert [panel.get_title() for panel in panels] == [
        "uniform routing",
        "skewed routing, prefill apart",
    ]
    for panel in panels:
        assert panel.get_legend_handles_labels()[1] == ["full, 256", "exported, 128"]
        assert [text.get_text() for text in panel.texts][1:] == ["exported, 128: 1.50"]


def test_servers_have_tables_if_they_were_measured(rows, tmp_path):
    committed = StudyPaths.of(MEASURED_STUDY).root.glob("[2-6]0_*/*.jsonl")
    others = [path for path in sorted(committed) if path.stem != "throughput"]
    served = tmp_path / "throughput.jsonl"
    served.write_text("".join(json.dumps(each) + "\n" for each in rows))

    def written(out: Path, files: list[Path]) -> set[str]:
        write_measured_tables(
            ReportConfig(), backbone=BACKBONE, rows=files, paper=PAPER_THROUGHPUT, out=out
        )
        return {path.name for path in out.glob("served_*.csv")}

    assert written(tmp_path / "without", others) == set()
    assert written(tmp_path / "with", [*others, served]) == {
        "served_throughput.csv",
        "served_ratio_at_target.csv",
        "served_prefill_throughput.csv",
    }
