"""Settings whose times are made up: the tile's rows in microseconds, and what the clock adds."""

from dataclasses import dataclass

from slimwise_vllm.moe_tuning.candidates import KernelConfig, kernel_config
from slimwise_vllm.moe_tuning.search import fastest


def setting(rows: int) -> KernelConfig:
    return kernel_config((rows, 64, 64), 1, 4, 3)


@dataclass
class Clocked:
    config: KernelConfig
    drift: list[float]

    def microseconds(self) -> float:
        self.drift[0] += 0.01
        return self.config["BLOCK_SIZE_M"] + self.drift[0]


def race(choices, references, finalists=2):
    drift = [0.0]
    prepared = []

    def prepare(config):
        prepared.append(config["BLOCK_SIZE_M"])
        return None if config["BLOCK_SIZE_M"] == 16 else Clocked(config, drift)

    settings = [setting(rows) for rows in choices]
    named = {name: setting(rows) for name, rows in references.items()}
    return fastest(prepare, settings, named, finalists=finalists, rounds=5), prepared


def test_the_fastest_that_the_device_takes_wins():
    found, prepared = race([64, 16, 32, 128], {"default": 64})
    assert found.config == setting(32)
    assert found.tuned_us < found.reference_us["default"]
    assert prepared == [64, 16, 32, 128, 64]


def test_a_reference_that_no_candidate_beats_is_taken():
    found, _ = race([64, 128], {"default": 48, "shipped": 96})
    assert found.config == setting(48)
    assert found.reference_us.keys() == {"default", "shipped"}


def test_finalists_are_timed_in_turns_so_that_a_drift_favours_none():
    """One after another, the last would seem slower than a setting that takes 1 us more."""
    found, _ = race([32, 33], {"default": 34})
    assert found.config == setting(32)
    assert 1.9 < found.reference_us["default"] - found.tuned_us < 2.1


def test_a_reference_that_the_device_refuses_has_no_time():
    found, _ = race([64], {"default": 16})
    assert found.reference_us == {}
