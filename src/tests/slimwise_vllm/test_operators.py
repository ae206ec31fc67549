"""Legend: T tokens, E experts, P pools, L MoE layers, K top-k, H phases and padding."""

import pytest
import torch

from slimwise_vllm.operators import define_operators

PRUNED_PE = torch.tensor([[False] * 4, [False, True, True, False]])


@pytest.fixture(autouse=True)
def _operators():
    define_operators()
    define_operators()


def masked(logits_TN, pool_T, pruned_PE=PRUNED_PE, block_P=None):
    return torch.ops.slimwise.mask_router_logits(logits_TN, pruned_PE, pool_T, block_P)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rows_of_the_full_pool_keep_their_bits(dtype):
    logits_TE = torch.randn(6, 4).to(dtype)
    logits_TE[0, 0] = -0.0
    pool_T = torch.tensor([0, 1, 0, 1, 0, 1, 1, 1], dtype=torch.int32)
    before = logits_TE.clone()
    found = masked(logits_TE, pool_T)
    bits = torch.int32 if dtype is torch.float32 else torch.int16
    assert torch.equal(found[0::2].view(bits), logits_TE[0::2].view(bits))
    assert torch.equal(found[1::2][:, [0, 3]], logits_TE[1::2][:, [0, 3]])
    assert torch.equal(logits_TE, before)
    assert found.isfinite().all()
    assert found[1::2].topk(2).indices.sort().values.tolist() == [[0, 3]] * 3


def test_pruned_experts_get_no_gate_at_all():
    gates = masked(torch.full((1, 4), -5e3), torch.ones(1, dtype=torch.int32)).softmax(-1)
    assert gates.tolist() == [[0.5, 0.0, 0.0, 0.5]]


def test_a_pool_with_a_router_of_its_own_reads_the_block_of_that():
    pool_T = torch.tensor([1, 0, 1], dtype=torch.int32)
    block_P = torch.tensor([0, 1], dtype=torch.int32)
    first_TE, second_TE = torch.randn(2, 3, 4)
    found = masked(torch.cat([first_TE, second_TE], 1), pool_T, block_P=block_P)
    own_TE = torch.stack([second_TE[0], first_TE[1], second_TE[2]])
    assert torch.equal(found, masked(own_TE, pool_T))


@pytest.mark.parametrize("block_P", [None, torch.tensor([0, 1], dtype=torch.int32)])
def test_the_fake_operator_agrees_with_the_real_one(block_P):
    logits_TN = torch.randn(3, 4 if block_P is None else 8)
    arguments = (logits_TN, PRUNED_PE, torch.ones(8, dtype=torch.int32), block_P)
    torch.library.opcheck(torch.ops.slimwise.mask_router_logits.default, arguments)


def test_choices_are_counted_by_phase_layer_and_expert():
    counts_HLE = torch.zeros(3, 2, 4, dtype=torch.int32)
    ids_TK = torch.tensor([[0, 1], [1, 2], [3, 3], [-1, -1]])
    phase_T = torch.tensor([0, 1, 2, 2, 2], dtype=torch.int32)
    for _ in range(2):
        torch.ops.slimwise.count_experts(ids_TK, phase_T, counts_HLE, 1)
    assert counts_HLE[:, 0].sum() == 0
    assert counts_HLE[:, 1].tolist() == [[2, 2, 0, 0], [0, 2, 2, 0], [0, 0, 0, 4]]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_kernels_agree_with_the_cpu(dtype):
    generator = torch.Generator().manual_seed(0)
    logits_TE = torch.randn(97, 256, generator=generator).to(dtype)
    pruned_PE = torch.rand(3, 256, generator=generator) < 0.5
    pool_T = torch.randint(3, (128,), dtype=torch.int32, generator=generator)
    found = masked(logits_TE.cuda(), pool_T.cuda(), pruned_PE.cuda())
    assert torch.equal(found.cpu(), masked(logits_TE, pool_T, pruned_PE))

    block_P = torch.tensor([0, 2, 1], dtype=torch.int32)
    logits_TN = torch.randn(97, 3 * 256, generator=generator).to(dtype)
    found = masked(logits_TN.cuda(), pool_T.cuda(), pruned_PE.cuda(), block_P.cuda())
    assert torch.equal(found.cpu(), masked(logits_TN, pool_T, pruned_PE, block_P))

    ids_TK = torch.randint(-1, 256, (97, 8), dtype=torch.int32, generator=generator)
    counts_HLE = torch.zeros(3, 2, 256, dtype=torch.int32)
    counts_on_gpu = counts_HLE.cuda()
    torch.ops.slimwise.count_experts(ids_TK, pool_T, counts_HLE, 1)
    torch.ops.slimwise.count_experts(ids_TK.cuda(), pool_T.cuda(), counts_on_gpu, 1)
    assert torch.equal(counts_on_gpu.cpu(), counts_HLE)


@pytest.mark.gpu
def test_a_captured_graph_reads_the_pools_of_its_replay():
    logits_TE, pool_T = torch.randn(4, 4).cuda(), torch.zeros(8, dtype=torch.int32).cuda()
    pruned_PE = PRUNED_PE.cuda()
    masked(logits_TE, pool_T, pruned_PE)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = masked(logits_TE, pool_T, pruned_PE)
    pool_T[:2] = 1
    graph.replay()
    assert torch.equal(found, masked(logits_TE, pool_T, pruned_PE))
