"""What a scheduler does to requests never moves a token to another pool's trained weights."""

import pytest

from slimwise.errors import ConfigError

from .scheduling import BLOCK_TOKENS, assert_same, preempted_turns, scheduler, second_turn

pytestmark = pytest.mark.slow

FAMILY = "gemma4"
CHOICES = {
    "full": {"mode": "full"},
    "half": {"mode": "slimwise", "pool": "half"},
    "kd": {"mode": "slimwise", "pool": "kd"},
    "kd_small": {"mode": "slimwise", "pool": "kd_small"},
    "pruned_kd": {"mode": "pruned", "pool": "kd"},
    "reverse_kd": {"mode": "reverse", "pool": "kd"},
    "two_trained": {"prefill_pool": "kd_small", "decode_pool": "kd"},
}


@pytest.fixture(scope="module")
def distilled(distilled_backbone):
    return distilled_backbone(FAMILY)


@pytest.fixture(scope="module")
def start(distilled, start_engine):
    """A function that starts an engine with all pools of the distilled backbone."""

    def engine(**options):
        config = distilled.additional_config(check_routing=True)
        return start_engine(
            distilled.backbone.folder,
            dtype="float32",
            additional_config=config,
            block_size=BLOCK_TOKENS,
            **options,
        )

    return engine


@pytest.fixture(scope="module")
def engine(start):
    return start()


@pytest.fixture(scope="module")
def caching_engine(start):
    # Sliding windows of their own would limit what can be found again.
    return start(enable_prefix_caching=True, disable_hybrid_kv_cache_manager=True)


@pytest.fixture(scope="module")
def expected(engine, ask, sampling, prompts):
    """Turns of each choice, each request alone."""
    return {
        name: [ask(engine, [prompt], sampling(**choice))[0] for prompt in prompts]
        for name, choice in CHOICES.items()
    }


def test_all_choices_in_one_batch(engine, ask, sampling, prompts, expected):
    asked = [(prompt, name) for prompt in prompts for name in CHOICES]
    parameters = [sampling(**CHOICES[name]) for _, name in asked]
    found = ask(engine, [prompt for prompt, _ in asked], parameters)
    assert_same(found, [expected[name][prompts.index(prompt)] for prompt, name in asked])
    assert len({str([turn.answer for turn in turns]) for turns in expected.values()}) == 7


def test_a_pool_does_not_feel_those_beside_it(
    distilled, start_engine, ask, sampling, prompts, expected
):
    tiny = distilled.backbone
    files = {"keep_set": str(tiny.small_keep_set), "trained": str(distilled.trained_small)}
    alone = start_engine(
        tiny.folder,
        dtype="float32",
        additional_config={"slimwise": {"pools": {"only": files}, "check_routing": True}},
    )
    assert_same(ask(alone, prompts, sampling(mode="slimwise")), expected["kd_small"])


@pytest.mark.parametrize("name", ["kd", "two_trained"])
def test_every_size_of_chunk(engine, ask, sampling, prompts, expected, name, monkeypatch):
    asked = prompts[3:]
    for chunk_tokens in (1, 2, 3, 5, 11, len(asked[0]) - 1, len(asked[0]), len(asked[0]) + 1):
        monkeypatch.setattr(scheduler(engine), "max_num_scheduled_tokens", chunk_tokens)
        assert_same(ask(engine, asked, sampling(**CHOICES[name])), expected[name][3:])


def test_preempted_requests_recompute_each_token_with_its_weights(
    start, engine, ask, sampling, prompts, monkeypatch
):
    cramped = start(num_gpu_blocks_override=17, max_model_len=96)
    asked, parameters = prompts[2:] * 2, sampling(40, **CHOICES["kd"])
    found = preempted_turns(cramped, ask, asked, parameters, monkeypatch)
    assert_same(found, ask(engine, asked, parameters))


@pytest.mark.parametrize(
    ("names", "num_cached_tokens"),
    [
        (("kd", "kd"), 32),
        (("full", "full"), 64),
        (("pruned_kd", "pruned_kd"), 64),
        (("pruned_kd", "half"), 0),
        (("half", "kd"), 32),
        (("kd", "full"), 32),
        (("pruned_kd", "reverse_kd"), 64),
    ],
)
def test_a_second_turn_reuses_only_what_its_prefill_would_compute(
    caching_engine, engine, ask, sampling, prompts, names, num_cached_tokens
):
    caching_engine.reset_prefix_cache()
    choices = [CHOICES[name] for name in names]
    cached = second_turn(caching_engine, ask, sampling, prompts[4], choices)
    assert cached.num_cached_tokens == num_cached_tokens
    assert_same([cached], [second_turn(engine, ask, sampling, prompts[4], choices)])


def test_one_keep_set_with_and_without_training_is_two_pools(
    caching_engine, ask, sampling, prompts
):
    caching_engine.reset_prefix_cache()
    cached = [
        ask(caching_engine, [prompts[4]], sampling(mode="pruned", pool=pool))[0].num_cached_tokens
        for pool in ("half", "kd", "kd")
    ]
    assert cached == [0, 0, BLOCK_TOKENS]


def test_weights_that_would_not_fit_the_trained_ones_are_not_loaded(
    engine, ask, sampling, prompts, expected
):
    with pytest.raises(ConfigError, match="reload_weights"):
        engine.collective_rpc("reload_weights")
    assert_same(ask(engine, prompts, sampling(**CHOICES["kd"])), expected["kd"])
