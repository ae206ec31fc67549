"""Every bit pattern of every type, against what torch says of it."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from slimwise.artifacts.weight_files import WeightEntry
from slimwise.errors import CheckpointError
from slimwise.export.values import check_values

TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E8M0": torch.float8_e8m0fnu,
}


def _patterns(dtype: torch.dtype) -> torch.Tensor:
    """All of a narrow type; of a wide one those whose upper 16 bits are all there, ends of 0 or 1.

    The upper 16 bits hold sign and exponent.
    """
    width = dtype.itemsize * 8
    upper = np.arange(1 << min(width, 16), dtype=np.uint64) << np.uint64(max(width - 16, 0))
    if width > 16:
        upper = np.concatenate([upper, upper + np.uint64(1)])
    return torch.from_numpy(upper.astype(f"u{dtype.itemsize}")).view(dtype)


def _is_refused(values: torch.Tensor, kind: str, name: str) -> bool:
    content = values.contiguous().view(torch.uint8).numpy().tobytes()
    entry = WeightEntry(name, kind, tuple(values.shape), Path("w"), 0, len(content))
    try:
        check_values(entry, memoryview(content))
    except CheckpointError:
        return True
    return False


@pytest.mark.parametrize(("kind", "dtype"), TYPES.items())
def test_exactly_finite_weights_and_positive_scales_pass(kind, dtype):
    values = _patterns(dtype)
    wide = values.double()
    is_finite, is_positive = wide.isfinite(), wide > 0
    assert not _is_refused(values[is_finite], kind, "weight")
    assert not _is_refused(values[is_finite & is_positive], kind, "weight_scale_inv")
    some = slice(None, None, max(len(values) // 256, 1))
    for value in values[~is_finite][some]:
        assert _is_refused(torch.stack([values[1], value]), kind, "weight")
    for value in values[is_finite & ~is_positive][some]:
        assert _is_refused(torch.stack([values[1], value]), kind, "weight_scale")


@pytest.mark.parametrize(
    ("name", "is_of_quantisation"),
    [
        ("model.layers.0.mlp.experts.7.up_proj.weight_scale_inv", True),
        ("model.layers.0.mlp.experts.gate_up_proj_scale_inv", True),
        ("model.layers.0.mlp.experts.7.up_proj.weight_global_scale", True),
        ("model.layers.0.self_attn.q_proj.input_scale", True),
        ("model.layers.0.self_attn.k_scale", True),
        ("model.layers.0.router.per_expert_scale", False),
        ("model.layers.0.router.scale", False),
        ("model.audio_tower.layers.0.self_attn.per_dim_scale", False),
        ("model.vision_tower.std_scale", False),
    ],
)
def test_trained_scales_may_have_any_sign(name, is_of_quantisation):
    """Gemma 4's audio tower begins with scales of 0."""
    for value in (0.0, -1.0):
        assert _is_refused(torch.tensor([1.0, value]), "F32", name) is is_of_quantisation


def test_one_bad_value_is_found_wherever_it_lies():
    values = torch.ones(2**19, dtype=torch.bfloat16)
    for place, bad in itertools.product((0, 2**17 - 1, 2**17, 2**19 - 1), (torch.nan, torch.inf)):
        spoilt = values.clone()
        spoilt[place] = bad
        assert _is_refused(spoilt, "BF16", "weight")


def test_whole_numbers_are_never_refused():
    assert not _is_refused(torch.full((4,), -1), "I64", "position_ids")
