import torch

from slimwise.calibrate.batches import token_batches


def test_every_sequence_once_within_the_limit():
    sequences = [[n] * n for n in (3, 9, 1, 4, 8, 4)]
    batches = list(token_batches(sequences, 16))
    rows = [
        ids[mask.bool()].tolist()
        for batch in batches
        for ids, mask in zip(batch.ids_BS, batch.mask_BS, strict=True)
    ]
    assert rows == sorted(sequences, key=len, reverse=True)
    assert all(batch.ids_BS.numel() <= 16 for batch in batches)
    assert sum(batch.num_tokens for batch in batches) == 29


def test_a_sequence_above_the_limit_goes_alone():
    batches = list(token_batches([[5] * 40, [6]], 16))
    assert [tuple(batch.ids_BS.shape) for batch in batches] == [(1, 40), (1, 1)]


def test_padding_is_on_the_right():
    (batch,) = token_batches([[7, 8], [9, 9, 9]], 100)
    assert torch.equal(batch.mask_BS, torch.tensor([[1, 1, 1], [1, 1, 0]]))
    assert batch.ids_BS[1].tolist() == [7, 8, 0]
