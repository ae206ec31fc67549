"""On which devices a process of a stage computes."""

import pytest
import torch

from slimwise.errors import ConfigError
from slimwise.processes import local_devices
from slimwise.resources import GPUS_VARIABLE


@pytest.fixture(autouse=True)
def _no_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.delenv(GPUS_VARIABLE, raising=False)


def test_a_host_without_gpus_computes_on_its_cpu():
    assert local_devices("auto") == local_devices("cpu") == (torch.device("cpu"),)


def test_a_host_that_lacks_the_gpus_of_the_study_is_refused(monkeypatch):
    monkeypatch.setenv(GPUS_VARIABLE, "1")
    with pytest.raises(ConfigError, match=r"'auto' needs 1 GPUs .* 0 are visible\. Set res"):
        local_devices("auto")
    assert local_devices("cpu") == (torch.device("cpu"),)
