import shutil
from collections import namedtuple
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from slimwise.cli import main
from slimwise.errors import ConfigError
from slimwise.inspect.config import BackboneConfig
from slimwise.study_plan.checkpoint_sizes import planned_backbone
from slimwise.study_plan.estimates import estimates
from slimwise.study_plan.run import merged_study, study_plan

CONFIG = Path(__file__).resolve().parents[3] / "config"
GIB = 2**30


@pytest.fixture(scope="module")
def main_backbone():
    return planned_backbone(BackboneConfig(model="Qwen/Qwen3.6-35B-A3B", name="main"))


def test_bytes_follow_from_the_shape(main_backbone):
    """Experts: 256 x (1024 + 512) x 2048 values in each of 40 layers, two bytes each."""
    expert_bytes = 40 * 3 * 512 * 2048 * 2
    router_row_bytes = 40 * 2048 * 2
    assert main_backbone.num_bytes - main_backbone.pruned_bytes(128) == 128 * (
        expert_bytes + router_row_bytes
    )
    assert main_backbone.pruned_bytes(256) == main_backbone.num_bytes
    assert main_backbone.shared_expert_bytes == expert_bytes
    assert 65 < main_backbone.num_bytes / GIB < 66


def test_a_folder_is_planned_by_its_headers(tiny_checkpoint):
    folder = tiny_checkpoint("plain")
    planned = planned_backbone(BackboneConfig(model=str(folder), name="tiny"))
    tensors = load_file(folder / "model.safetensors")
    assert planned.num_bytes == sum(tensor.nbytes for tensor in tensors.values())
    # Ten experts less in two layers, of 3 x 8 x 32 weights and a router row each, float32.
    assert planned.num_bytes - planned.pruned_bytes(6) == 2 * 10 * (3 * 8 * 32 + 32) * 4


def test_another_hub_id_is_not_fetched():
    with pytest.raises(ConfigError, match=r"'someone/model' is no folder here"):
        planned_backbone(BackboneConfig(model="someone/model", name="unknown"))


def test_hours_are_tokens_over_measured_speed(main_backbone):
    study = merged_study([CONFIG / "qwen3_6_35b_a3b.yaml"])
    rows = {row.stage: row for row in estimates(study, main_backbone)}
    scored = 6 * 4096 * 2048
    assert rows["collect_stats"].gpu_hours == pytest.approx(scored / 16156.4 / 3600)
    assert "16,156 tokens/s" in rows["collect_stats"].basis
    trained = 8 * 8000 * 8
    assert rows["distill_decoder"].most_gpu_hours == pytest.approx(trained * 12288 / 3553.4 / 3600)
    # Four runs over 500 + 500 + 164 + 378 + 1,351 + 1,150 items, each 32,768 tokens long.
    assert rows["generate_full_answers"].most_gpu_hours == pytest.approx(
        4 * 4043 * 32768 / 4833.2 / 3600
    )
    # Nine decoders in slimwise, three of them in reverse too, and eight distilled ones.
    assert rows["generate_colocated_answers"].count == 9 + 3 + 8
    assert rows["export_decoder"].num_bytes == sum(
        3 * main_backbone.pruned_bytes(num_kept) for num_kept in (192, 128, 64)
    ) + 8 * main_backbone.shared_expert_bytes + sum(
        times * main_backbone.pruned_bytes(num_kept)
        for num_kept, times in ((192, 2), (128, 4), (64, 2))
    )  # fmt: skip


@pytest.mark.parametrize(("free_gib", "warns"), [(100, True), (1000, False)])
def test_too_small_a_disk_is_told(free_gib, warns, monkeypatch, capsys):
    usage = namedtuple("usage", ["free"])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(free_gib * GIB))
    assert main(["plan", "--configfile", str(CONFIG / "gemma4_26b_a4b.yaml")]) == 0
    printed = capsys.readouterr().out
    assert ("WARNING: disk" in printed) is warns
    assert "distill_decoder" in printed
    assert torch.get_default_device() == torch.device("cpu")


def test_what_was_never_measured_has_no_hours():
    text = study_plan([CONFIG / "smoke.yaml"])
    assert "| collect_stats" in text
    assert "| ?" in text


def test_later_overlays_win(tmp_path):
    later = tmp_path / "later.yaml"
    later.write_text("evaluation: {num_items: 3}\nselection: {num_kept: [16]}\n"
                     "distillation: {rules: []}\n")  # fmt: skip
    with pytest.raises(ConfigError, match=r"colocated_num_kept\.slimwise names 32"):
        merged_study([CONFIG / "smoke.yaml", later])
    later.write_text("evaluation: {num_items: 3}\n")
    study = merged_study([CONFIG / "smoke.yaml", later])
    assert (study.evaluation.num_items, study.evaluation.sampled_runs) == (3, 1)


@pytest.mark.parametrize("text", ["", "- a\n", "a: [\n"])
def test_files_that_are_no_overlay_are_refused(tmp_path, text):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"bad\.yaml"):
        merged_study([tmp_path / "bad.yaml"])
