from types import SimpleNamespace

import pytest

from slimwise.errors import EngineError
from slimwise_vllm.decode_bench.live_batch import LiveBatch


class SlowReader:
    """Stands in for vllm.LLM and its engine: reads one prompt at a time, each for many steps."""

    def __init__(self, steps_per_prompt: int) -> None:
        self.scheduler = SimpleNamespace(running=[])
        self.llm_engine = self.engine_core = self
        self._steps_per_prompt, self._steps, self._max_tokens = steps_per_prompt, 0, 0

    def enqueue(self, inputs, parameters, use_tqdm):
        self._waiting, self._max_tokens = len(inputs), parameters.max_tokens
        return [str(number) for number in range(len(inputs))]

    def step(self):
        self._steps += 1
        running = self.scheduler.running
        for request in running:
            request.num_output_tokens += 1
        self.scheduler.running = [r for r in running if r.num_output_tokens < self._max_tokens]
        if self._waiting and self._steps % self._steps_per_prompt == 0:
            self._waiting -= 1
            self.scheduler.running.append(SimpleNamespace(num_output_tokens=1))


@pytest.fixture
def live():
    llm = SlowReader(steps_per_prompt=100)
    return LiveBatch(llm, vocabulary=32, seed=0)


def test_a_batch_of_long_prompts_is_waited_for(live):
    live.begin(3, prompt_tokens=8, max_tokens=250, extra_args={})
    live.expect(3)


def test_a_batch_whose_first_request_ends_before_the_last_begins_is_refused(live):
    with pytest.raises(EngineError, match=r"3 requests do not decode at once, \d of them run"):
        live.begin(3, prompt_tokens=8, max_tokens=150, extra_args={})
