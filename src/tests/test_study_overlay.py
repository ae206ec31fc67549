import json
import shutil

import pytest
import yaml

from slimwise.cli import main
from slimwise.config import load_study
from slimwise.paths import EMBEDDED_CHECKPOINT


@pytest.fixture
def model(tmp_path):
    """A folder whose name is no name of a study, with the miniature's configuration."""
    folder = tmp_path / "my model"
    folder.mkdir()
    shutil.copy(EMBEDDED_CHECKPOINT / "config.json", folder)
    (folder / "model.safetensors").touch()
    return folder


@pytest.fixture
def chats(tmp_path):
    folder = tmp_path / "chats"
    folder.mkdir()
    for name in ("support", "code"):
        (folder / f"{name}.jsonl").write_text('{"messages": []}\n')
    return folder


def test_the_overlay_is_a_study_of_that_model_and_data(model, chats, tmp_path, capsys):
    words = ["--chats", str(chats), "--num-kept", "16", "--steps", "40", "--out", str(tmp_path)]
    assert main(["init", str(model), *words]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "my-model.yaml")
    study = load_study(yaml.safe_load((tmp_path / "my-model.yaml").read_text()))
    assert study.backbone.model == str(model)
    assert study.calibration.components == ("code", "support")
    assert study.calibration.data_files() == [chats / "code.jsonl", chats / "support.jsonl"]
    assert list(map(str, study.distilled_decoders())) == ["reap-m16-kd_uniform"]
    assert (study.distillation.steps, study.distillation.warmup_steps) == (40, 2)
    assert study.distillation.agent_share == 0
    assert study.serving.max_model_len_tokens == 1024  # what the miniature was made for


def test_without_chats_the_papers_data_and_half_of_the_experts(model, tmp_path):
    assert main(["init", str(model), "--out", str(tmp_path)]) == 0
    study = load_study(yaml.safe_load((tmp_path / "my-model.yaml").read_text()))
    assert study.calibration.dataset == "reap_mixture"
    assert study.selection.num_kept == (32,)
    assert study.distillation.agent_share == 0.35


def test_a_family_without_a_shared_expert_is_not_distilled(model, tmp_path):
    path = model / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_type": "qwen3_moe"}))
    assert main(["init", str(model), "--out", str(tmp_path)]) == 0
    study = load_study(yaml.safe_load((tmp_path / "my-model.yaml").read_text()))
    assert study.distilled_decoders() == ()


def test_what_it_refuses_leaves_no_file(model, tmp_path, capsys):
    out = tmp_path / "config"
    out.mkdir()
    (out / "my-model.yaml").write_text("edited\n")
    assert main(["init", str(model), "--out", str(out)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert (out / "my-model.yaml").read_text() == "edited\n"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert main(["init", str(model), "--chats", str(empty), "--out", str(empty)]) == 2
    assert "holds no .jsonl" in capsys.readouterr().err
    assert not list(empty.iterdir())


@pytest.mark.parametrize(("num_kept", "limit"), [("3", "below top_k=4"), ("65", "num_experts=64")])
def test_a_count_that_the_model_cannot_keep_is_refused(model, tmp_path, capsys, num_kept, limit):
    assert main(["init", str(model), "--num-kept", num_kept, "--out", str(tmp_path)]) == 2
    assert limit in capsys.readouterr().err
    assert not (tmp_path / "my-model.yaml").exists()
