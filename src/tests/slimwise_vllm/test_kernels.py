"""The Triton kernels on a GPU, against the same operators on the CPU.

Legend: T tokens, E experts, P pools, L MoE layers, K top-k, H phases and padding.
"""

import pytest
import torch

from slimwise_vllm.operators import define_operators

pytestmark = pytest.mark.gpu

BITS = {torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float16: torch.int16}
NUM_POOLS = 3
NUM_LAYERS = 40


@pytest.fixture(autouse=True)
def _operators():
    define_operators()


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def masked(logits_TE, pruned_PE, pool_T):
    return torch.ops.slimwise.mask_router_logits(logits_TE, pruned_PE, pool_T)


def case(num_tokens, num_experts, generator, dtype=torch.bfloat16):
    """Logits, pruned experts of pools of which the first is full, and more rows than tokens."""
    logits_TE = torch.randn(num_tokens, num_experts, generator=generator).to(dtype)
    pruned_PE = torch.rand(NUM_POOLS, num_experts, generator=generator) < 0.5
    pruned_PE[0] = False
    pool_T = torch.randint(NUM_POOLS, (num_tokens + 7,), dtype=torch.int32, generator=generator)
    return logits_TE, pruned_PE, pool_T


def on_gpu(*tensors):
    return [tensor.cuda() for tensor in tensors]


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("num_experts", [5, 60, 256, 1500])
@pytest.mark.parametrize("num_tokens", [1, 97])
def test_masked_logits_have_the_bits_of_the_cpu(dtype, num_experts, num_tokens, generator):
    tensors = case(num_tokens, num_experts, generator, dtype)
    found = masked(*on_gpu(*tensors)).cpu()
    assert torch.equal(found.view(BITS[dtype]), masked(*tensors).view(BITS[dtype]))


def test_signed_zeros_and_infinities_pass_untouched(generator):
    logits_TE, pruned_PE, pool_T = case(3, 8, generator)
    logits_TE[:, :3] = torch.tensor([-0.0, torch.inf, -torch.inf])
    pool_T[:] = 0
    found = masked(*on_gpu(logits_TE, pruned_PE, pool_T)).cpu()
    assert torch.equal(found.view(torch.int16), logits_TE.view(torch.int16))


def test_a_row_stride_is_followed(generator):
    logits_TE, pruned_PE, pool_T = case(33, 128, generator)
    wide = torch.randn(33, 200, generator=generator).bfloat16().cuda()
    wide[:, 30:158] = logits_TE.cuda()
    found = masked(wide[:, 30:158], *on_gpu(pruned_PE, pool_T))
    assert found.is_contiguous()
    assert torch.equal(found.cpu(), masked(logits_TE, pruned_PE, pool_T))


def test_a_pool_of_a_larger_tensor_is_read_at_its_place(generator):
    logits_TE, pruned_PE, pool_T = case(9, 60, generator)
    pruned_LPE = torch.stack([~pruned_PE, pruned_PE]).cuda()
    found = masked(logits_TE.cuda(), pruned_LPE[1], pool_T.cuda())
    assert torch.equal(found.cpu(), masked(logits_TE, pruned_PE, pool_T))


def test_no_tokens_are_no_rows(generator):
    logits_TE, pruned_PE, pool_T = on_gpu(*case(0, 16, generator))
    counts_HLE = torch.zeros(3, 1, 16, dtype=torch.int32).cuda()
    ids_TK = torch.zeros(0, 4, dtype=torch.int32).cuda()
    torch.ops.slimwise.count_experts(ids_TK, pool_T, counts_HLE, 0)
    assert masked(logits_TE, pruned_PE, pool_T).shape == (0, 16)
    assert not counts_HLE.any()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("num_tokens", [1, 3, 128, 1025])
def test_counts_are_those_of_the_cpu(dtype, num_tokens, generator):
    ids_TK = torch.randint(-1, 60, (num_tokens, 8), generator=generator).to(dtype)
    phase_T = torch.randint(3, (num_tokens + 5,), dtype=torch.int32, generator=generator)
    counts_HLE = torch.zeros(3, 4, 60, dtype=torch.int32)
    counts_on_gpu = counts_HLE.cuda()
    for layer in (0, 3, 3):
        torch.ops.slimwise.count_experts(ids_TK, phase_T, counts_HLE, layer)
        torch.ops.slimwise.count_experts(ids_TK.cuda(), phase_T.cuda(), counts_on_gpu, layer)
    assert torch.equal(counts_on_gpu.cpu(), counts_HLE)


def test_ids_need_not_be_contiguous(generator):
    ids_TK = torch.randint(16, (50, 8), dtype=torch.int32, generator=generator)
    phase_T = torch.zeros(50, dtype=torch.int32)
    counts_HLE = torch.zeros(3, 1, 16, dtype=torch.int32)
    counts_on_gpu = counts_HLE.cuda()
    torch.ops.slimwise.count_experts(ids_TK[:, :3], phase_T, counts_HLE, 0)
    torch.ops.slimwise.count_experts(ids_TK.cuda()[:, :3], phase_T.cuda(), counts_on_gpu, 0)
    assert torch.equal(counts_on_gpu.cpu(), counts_HLE)


def captured(step):
    """A graph of the step, which has run once before, as vLLM's warm-up does."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def test_a_replayed_graph_reads_and_counts_what_is_there_then(generator):
    logits_TE, pruned_PE, pool_T = on_gpu(*case(16, 256, generator))
    counts_HLE = torch.zeros(3, 1, 256, dtype=torch.int32).cuda()
    phase_T = torch.ones_like(pool_T)
    found = {}

    def step():
        found["logits"] = masked(logits_TE, pruned_PE, pool_T)
        found["ids"] = found["logits"].topk(8).indices
        torch.ops.slimwise.count_experts(found["ids"], phase_T, counts_HLE, 0)

    graph = captured(step)
    for pool in (1, 2, 0):
        pool_T.fill_(pool)
        counts_HLE.zero_()
        graph.replay()
        assert torch.equal(found["logits"], masked(logits_TE, pruned_PE, pool_T))
        assert counts_HLE[1].sum() == 16 * 8
        assert not counts_HLE[1, 0, pruned_PE[pool]].any()


def test_compiled_code_keeps_the_operators_whole(generator):
    logits_TE, pruned_PE, pool_T = on_gpu(*case(16, 64, generator))

    def chosen(logits_TE):
        return masked(logits_TE * 2, pruned_PE, pool_T).softmax(-1)

    compiled = torch.compile(chosen, fullgraph=True)
    assert torch.equal(compiled(logits_TE) > 0, chosen(logits_TE) > 0)


@pytest.mark.parametrize(("counts", "limit_ms"), [(False, 0.15), (True, 0.35)])
def test_a_step_of_forty_layers_costs_little(counts, limit_ms, generator, record_property):
    """Replayed alone the kernels follow each other as closely as within a decode step.

    The limit is the target for the whole of the mask: 0.15 ms a step.
    """
    logits_TE, pruned_PE, pool_T = on_gpu(*case(64, 256, generator))
    counts_HLE = torch.zeros(3, NUM_LAYERS, 256, dtype=torch.int32).cuda()
    ids_TK = logits_TE.topk(8).indices.int()

    def step():
        for layer in range(NUM_LAYERS):
            masked(logits_TE, pruned_PE, pool_T)
            if counts:
                torch.ops.slimwise.count_experts(ids_TK, pool_T, counts_HLE, layer)

    graph = captured(step)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    begin.record()
    for _ in range(100):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    step_ms = begin.elapsed_time(end) / 100
    record_property("step_ms", step_ms)
    assert step_ms < limit_ms, f"{step_ms:.3f} ms"
