import pytest
import torch

from slimwise.core.slicing import kept_byte_ranges


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("kept", [(0, 1, 2, 3, 4, 5), (0,), (5,), (1, 2, 4), (0, 2, 3, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8])
def test_ranges_hold_what_index_select_takes(dim, kept, dtype):
    shape = [2, 3, 4]
    shape[dim] = 6
    tensor = torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype)
    content = tensor.view(torch.uint8).numpy().tobytes()
    ranges = kept_byte_ranges(shape, len(content), kept, dim)
    sliced = b"".join(content[begin:end] for begin, end in ranges)
    expected = tensor.index_select(dim, torch.tensor(kept)).contiguous()
    assert sliced == expected.view(torch.uint8).numpy().tobytes()


def test_neighbours_are_read_at_once():
    assert list(kept_byte_ranges([6, 10], 120, (0, 1, 2, 4), 0)) == [(0, 60), (80, 100)]
    assert list(kept_byte_ranges([6, 10], 120, range(6), 0)) == [(0, 120)]
