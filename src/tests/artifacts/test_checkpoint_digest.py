"""A model's digest follows its bytes, sampled where a file is large."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from slimwise.artifacts import checkpoint_digest as module
from slimwise.artifacts.checkpoint_digest import checkpoint_digest


def model(folder: Path, weight: torch.Tensor, config: str = "{}") -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(config)
    save_file({"a": torch.zeros(4096), "norm": weight}, folder / "model.safetensors")
    return folder


def test_equal_models_have_one_digest(tmp_path: Path) -> None:
    one, two = model(tmp_path / "one", torch.ones(2)), model(tmp_path / "two", torch.ones(2))
    assert checkpoint_digest(one) == checkpoint_digest(two)


def test_one_changed_value_of_a_small_file_is_seen(tmp_path: Path) -> None:
    one = model(tmp_path / "one", torch.tensor([1.0, 1.0]))
    two = model(tmp_path / "two", torch.tensor([1.0, 2.0]))
    assert checkpoint_digest(one) != checkpoint_digest(two)


def test_the_configuration_counts(tmp_path: Path) -> None:
    one = model(tmp_path / "one", torch.ones(2))
    two = model(tmp_path / "two", torch.ones(2), '{"hidden_act": "gelu"}')
    assert checkpoint_digest(one) != checkpoint_digest(two)


def test_another_training_of_a_large_model_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WHOLE_FILE_BYTES", 0)
    one, two = model(tmp_path / "one", torch.ones(2)), model(tmp_path / "two", torch.ones(2) * 3)
    assert checkpoint_digest(one) != checkpoint_digest(two)
