import torch

from slimwise.calibrate.batches import first_batch


def test_as_many_rows_as_fit_in_their_order():
    rows = [[n] * n for n in (9, 8, 4, 4, 3, 1)]
    batch = first_batch(rows, 18)
    assert [
        ids[mask.bool()].tolist() for ids, mask in zip(batch.ids_BS, batch.mask_BS, strict=True)
    ] == rows[:2]
    assert (batch.num_rows, batch.num_positions, batch.num_tokens) == (2, 18, 17)
    assert first_batch(rows[2:], 18).num_rows == 4


def test_a_row_above_the_limit_goes_alone():
    assert first_batch([[5] * 40, [6]], 16).ids_BS.shape == (1, 40)


def test_padding_is_on_the_right():
    batch = first_batch([[9, 9, 9], [7, 8]], 100)
    assert torch.equal(batch.mask_BS, torch.tensor([[1, 1, 1], [1, 1, 0]]))
    assert batch.ids_BS[1].tolist() == [7, 8, 0]
