"""What a scheduler does to requests never moves a token to another pool."""

import pytest

from slimwise_vllm.plugin import CHOOSER
from slimwise_vllm.routing_check import RoutingViolationError

from .scheduling import (
    BLOCK_TOKENS,
    TOLERANCE,
    assert_same,
    preempted_turns,
    scheduler,
    second_turn,
)

pytestmark = pytest.mark.slow

FAMILY = "qwen3_moe"
MODES = ("full", "pruned", "slimwise", "reverse")


@pytest.fixture(scope="module")
def backbone(tiny_backbone):
    return tiny_backbone(FAMILY)


@pytest.fixture(scope="module")
def start(backbone, start_engine):
    """A function that starts an engine with the pools of the backbone and further settings."""

    def engine(settings=None, **options):
        config = backbone.additional_config(check_routing=True, **(settings or {}))
        return start_engine(
            backbone.folder,
            dtype="float32",
            additional_config=config,
            block_size=BLOCK_TOKENS,
            **options,
        )

    return engine


@pytest.fixture(scope="module")
def engine(start, tmp_path_factory):
    coverage_file = tmp_path_factory.mktemp("coverage") / "coverage.json"
    return start({"coverage_file": str(coverage_file), "coverage_interval_steps": 1})


@pytest.fixture(scope="module")
def cramped_engine(start):
    """One that can hold about three requests of 80 tokens."""
    return start(num_gpu_blocks_override=9, max_model_len=96)


@pytest.fixture(scope="module")
def caching_engine(start):
    return start(enable_prefix_caching=True)


@pytest.fixture(scope="module")
def expected(engine, ask, sampling, prompts):
    """Turns of each mode, each request alone."""
    return {
        mode: [ask(engine, [prompt], sampling(mode=mode))[0] for prompt in prompts]
        for mode in MODES
    }


def test_a_request_of_each_mode_in_one_batch(engine, ask, sampling, prompts, expected):
    asked = [(prompt, mode) for prompt in prompts for mode in MODES]
    found = ask(engine, [p for p, _ in asked], [sampling(mode=mode) for _, mode in asked])
    assert_same(found, [expected[mode][prompts.index(prompt)] for prompt, mode in asked])


def test_two_pools_and_a_pool_for_each_phase(engine, ask, sampling, prompts, expected):
    arguments = [
        {"prefill_pool": "half", "decode_pool": "half"},
        {"decode_pool": "half"},
        {"mode": "slimwise", "pool": "small"},
        {"prefill_pool": "full", "decode_pool": "small"},
    ]
    pruned, slimwise, small, same_small = (
        ask(engine, prompts, sampling(**names)) for names in arguments
    )
    assert_same(pruned, expected["pruned"])
    assert_same(slimwise, expected["slimwise"])
    assert_same(small, same_small)
    assert [t.answer for t in small] != [t.answer for t in slimwise]


@pytest.mark.parametrize("mode", MODES)
def test_every_size_of_chunk(engine, ask, sampling, prompts, expected, mode, monkeypatch):
    asked = prompts[3:]
    for chunk_tokens in range(1, len(asked[0]) + 2):
        monkeypatch.setattr(scheduler(engine), "max_num_scheduled_tokens", chunk_tokens)
        assert_same(ask(engine, asked, sampling(mode=mode)), expected[mode][3:])


def test_prompts_beside_answers(engine, ask, sampling, prompts, expected):
    """Prompts arrive in chunks while earlier requests decode in the same steps."""
    modes = [MODES[index % 4] for index in range(12)]
    asked = [prompts[2 + index % 3] for index in range(12)]
    longer = [sampling(12 if index % 2 else 5, mode=mode) for index, mode in enumerate(modes)]
    found = ask(engine, asked, longer)
    for index, (turn, mode) in enumerate(zip(found, modes, strict=True)):
        alone = expected[mode][2 + index % 3]
        assert turn.answer == alone.answer[: len(turn.answer)]


@pytest.mark.parametrize("mode", ["slimwise", "reverse"])
def test_preempted_requests_recompute_each_phase_on_its_pool(
    cramped_engine, engine, ask, sampling, prompts, mode, monkeypatch
):
    asked, parameters = prompts[2:] * 2, sampling(40, mode=mode)
    found = preempted_turns(cramped_engine, ask, asked, parameters, monkeypatch)
    assert_same(found, ask(engine, asked, parameters))


@pytest.mark.parametrize(
    ("modes", "num_cached_tokens"),
    [
        (("full", "full"), 64),
        (("pruned", "pruned"), 64),
        (("slimwise", "slimwise"), 32),
        (("slimwise", "full"), 32),
        (("full", "slimwise"), 64),
        (("reverse", "reverse"), 32),
        (("full", "pruned"), 0),
        (("slimwise", "pruned"), 0),
        (("pruned", "slimwise"), 0),
    ],
)
def test_a_second_turn_reuses_only_what_its_prefill_would_compute(
    caching_engine, engine, ask, sampling, prompts, modes, num_cached_tokens
):
    caching_engine.reset_prefix_cache()
    choices = [{"mode": mode} for mode in modes]
    cached = second_turn(caching_engine, ask, sampling, prompts[4], choices)
    assert cached.num_cached_tokens == num_cached_tokens
    assert_same([cached], [second_turn(engine, ask, sampling, prompts[4], choices)])


def test_samples_of_one_prompt_share_its_pools(
    engine, ask, sampling, prompts, hf_models, reference
):
    turns = ask(engine, [prompts[3]], sampling(mode="slimwise", n=3))
    assert len({tuple(turn.answer) for turn in turns}) == 3
    for turn in turns:
        _, logprobs = reference(*hf_models(FAMILY), turn)
        assert turn.logprobs == pytest.approx(logprobs, abs=TOLERANCE)


def test_an_aborted_request_leaves_no_trace(engine, ask, sampling, prompts, expected):
    core = engine.llm_engine
    for name, mode in (("stays", "slimwise"), ("goes", "pruned")):
        prompt = {"prompt_token_ids": prompts[3]}
        core.add_request(name, prompt, sampling(40, mode=mode))
    for _ in range(3):
        core.step()
    core.abort_request(["goes"])
    finished = []
    while core.has_unfinished_requests():
        finished += [output for output in core.step() if output.finished]
    (stayed,) = [list(output.outputs[0].token_ids) for output in finished if output.outputs]
    assert stayed[:12] == expected["slimwise"][3].answer
    assert_same(ask(engine, prompts, sampling(mode="full")), expected["full"])


def test_a_changed_default_serves_the_next_request(engine, ask, sampling, prompts, expected):
    chooser = getattr(engine.llm_engine.input_processor, CHOOSER)
    assert_same(ask(engine, prompts, sampling()), expected["full"])
    chooser.set_default("slimwise")
    assert_same(ask(engine, prompts, sampling()), expected["slimwise"])
    chooser.set_default("full")


def test_an_unknown_mode_is_refused_and_the_engine_goes_on(
    engine, ask, sampling, prompts, expected
):
    with pytest.raises(Exception, match="mode 'fast' does not exist: choose one of full, pruned"):
        ask(engine, prompts[:1], sampling(mode="fast"))
    assert_same(ask(engine, prompts, sampling(mode="pruned")), expected["pruned"])


def test_coverage_counts_what_each_phase_reads(engine, ask, sampling, prompts):
    before = {phase: _choices(engine, phase) for phase in ("prefill", "decode")}
    ask(engine, prompts, sampling(mode="slimwise"))
    num_prompt_tokens = sum(map(len, prompts))
    choices_per_token = 4 * 4  # top-k x layers
    prefill = _choices(engine, "prefill") - before["prefill"]
    decode = _choices(engine, "decode") - before["decode"]
    assert prefill == (num_prompt_tokens - len(prompts)) * choices_per_token
    assert decode == 12 * len(prompts) * choices_per_token


def _choices(engine, phase):
    (report,) = engine.collective_rpc("slimwise_coverage")
    return sum(map(sum, report["tokens"][phase]))


def test_a_decode_token_on_a_pruned_expert_stops_the_engine(start, ask, sampling, prompts):
    engine = start()
    ask(engine, prompts, sampling(mode="slimwise"))
    layers = engine.apply_model(_unhook_the_last_layer)
    assert layers == [4]
    ask(engine, prompts, sampling(mode="full"))
    with pytest.raises(RoutingViolationError, match="in MoE layer 3 reached"):
        ask(engine, prompts, sampling(mode="slimwise"))


def _unhook_the_last_layer(model):
    runners = [module for module in model.modules() if "_maybe_dispatch" in vars(module)]
    del vars(runners[-1])["_maybe_dispatch"]
    return len(runners)
