import pytest
from safetensors.torch import load_file, save_file

from slimwise.cli import main


def test_whole_checkpoints_pass(tiny_checkpoint, export, kind, capsys):
    folder = tiny_checkpoint(kind)
    assert main(["verify", str(folder)]) == 0
    assert "2 MoE layers x 16 experts, top-4" in capsys.readouterr().out
    assert main(["verify", str(export(folder))]) == 0
    assert "x 6 experts, top-4" in (line := capsys.readouterr().out)
    assert "as its manifest says" in line


def _remove(folder):
    (folder / "model.safetensors").unlink()


def _change_a_value(folder):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors["model.norm.weight"] += 1
    save_file(tensors, path)


def _rename_an_expert(folder):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    name = "model.layers.0.mlp.experts.0.up_proj.weight"
    tensors[name.replace("up_proj", "upproj")] = tensors.pop(name)
    save_file(tensors, path)


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (_remove, "no .safetensors"),
        (_change_a_value, "model.safetensors has changed"),
        (_rename_an_expert, "lacks tensor up_proj.weight"),
    ],
)
def test_spoilt_checkpoints_fail_by_name(tiny_checkpoint, export, capsys, spoil, named):
    folder = export(tiny_checkpoint("plain"))
    spoil(folder)
    assert main(["verify", str(folder)]) == 2
    assert named in capsys.readouterr().err
