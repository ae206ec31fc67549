from types import SimpleNamespace

import numpy as np
import pytest

from slimwise.errors import KeepSetError
from slimwise_vllm.request_pools import PhasePools
from slimwise_vllm.step_hook import RequestTable, hook_steps

DIGESTS = ("", "abc", "def")


def new_request(name, prefill=0, decode=1, digests=DIGESTS):
    record = [prefill, decode, digests[prefill], digests[decode], -1]
    parameters = SimpleNamespace(extra_args={"slimwise_assigned": record})
    return SimpleNamespace(req_id=name, sampling_params=parameters)


def scheduled(new=(), finished=()):
    return SimpleNamespace(scheduled_new_reqs=list(new), finished_req_ids=set(finished))


class RunnerV1:
    """Row 2 of the input batch is left over from a finished request."""

    def __init__(self):
        self.input_batch = SimpleNamespace(
            num_reqs=2,
            req_ids=["b", "a"],
            num_prompt_tokens=np.array([5, 3, 99]),
            num_computed_tokens_cpu=np.array([0, 4, 99]),
        )

    def _prepare_inputs(self, _scheduler_output, num_scheduled):
        return "inputs", num_scheduled

    def execute_model(self, scheduler_output, _intermediate=None):
        return self._prepare_inputs(scheduler_output, np.array([5, 1]))

    def _dummy_run(self, num_tokens, *, is_profile=False):
        return num_tokens, is_profile


class RunnerV2:
    """Request state lives in slots; b, preempted, recomputes two output tokens."""

    def __init__(self):
        self.req_states = SimpleNamespace(
            prompt_len=SimpleNamespace(np=np.array([3, 99, 5])),
            prefill_len=SimpleNamespace(np=np.array([3, 99, 7])),
            num_computed_tokens_np=np.array([4, 99, 0]),
        )

    def prepare_inputs(self, _scheduler_output, _batch_state, *, num_active_loras=0):
        return SimpleNamespace(
            req_ids=["b", "a"],
            idx_mapping_np=np.array([2, 0]),
            num_scheduled_tokens=np.array([5, 1]),
        )

    def execute_model(self, scheduler_output, dummy_run=False):
        if not dummy_run:
            self.prepare_inputs(scheduler_output, None, num_active_loras=0)

    def _dummy_run(self, _num_tokens):
        self.execute_model(scheduled(), dummy_run=True)


@pytest.mark.parametrize("runner_class", [RunnerV1, RunnerV2])
def test_both_runners_announce_the_same_step(runner_class):
    runner, steps, calls = runner_class(), [], []
    table = RequestTable(DIGESTS)
    hook_steps(
        runner, table, steps.append, lambda: calls.append("dummy"), lambda: calls.append("end")
    )
    runner.execute_model(scheduled([new_request("a", 0, 1), new_request("b", 2, 0)]))
    (step,) = steps
    assert step.pools == [PhasePools(2, 0), PhasePools(0, 1)]
    assert step.num_prompt_R.tolist() == [5, 3]
    assert step.num_computed_R.tolist() == [0, 4]
    assert step.num_scheduled_R.tolist() == [5, 1]
    runner._dummy_run(4)
    assert len(steps) == 1
    assert calls[:2] == ["end", "dummy"]


def test_hooks_belong_to_one_runner_and_pass_results_on():
    hooked, other = RunnerV1(), RunnerV1()
    hook_steps(hooked, RequestTable(DIGESTS), lambda _: None, lambda: None, lambda: None)
    assert hooked.execute_model(scheduled())[0] == "inputs"
    assert hooked._dummy_run(3, is_profile=True) == (3, True)
    assert "execute_model" not in vars(other)


def test_a_finished_name_can_be_used_again():
    table = RequestTable(DIGESTS)
    table.update(scheduled([new_request("a", 0, 1)]))
    table.update(scheduled([new_request("a", 2, 2)], finished=["a"]))
    assert table.pools(["a", "warm-up"]) == [PhasePools(2, 2), PhasePools(0, 0)]
    table.update(scheduled(finished=["a"]))
    assert table.pools(["a"]) == [PhasePools(0, 0)]


def test_pools_that_a_worker_read_otherwise_than_the_server_stop_it():
    table = RequestTable(DIGESTS)
    with pytest.raises(KeepSetError, match=r"r1 .* \('abc', 'new'\), .* \('abc', 'def'\)"):
        table.update(scheduled([new_request("r1", 1, 2, digests=("", "abc", "new"))]))
