"""Training: data follow the step, the loss ignores batching, a resumed run is the same."""

import csv
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen3_5MoeForCausalLM

from slimwise.backbones.mini.architecture import mini_config
from slimwise.backbones.mini.tokenizer import train_tokenizer
from slimwise.errors import SlimWiseError
from slimwise.train.config import TrainConfig
from slimwise.train.data import IGNORED_LABEL, TrainingSteps, pad_sequences
from slimwise.train.loop import train
from slimwise.train.loss import response_loss
from slimwise.train.optimiser import learning_rate

CONFIG = TrainConfig(
    steps=4, batch_sequences=4, micro_batch_sequences=2, warmup_steps=2, checkpoint_every_steps=2
)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_tokenizer(512, items_per_family=40)


def tiny_model() -> Any:
    config = mini_config()
    config.num_hidden_layers = 2
    config.layer_types = ["linear_attention", "full_attention"]
    config.num_experts = 8
    torch.manual_seed(0)
    return Qwen3_5MoeForCausalLM(config)


def logged_losses(work: Path) -> list[str]:
    with (work / "train_log.csv").open() as log:
        return [row["loss"] for row in csv.DictReader(log)]


def test_padding_and_labels() -> None:
    batch = pad_sequences([([5, 6], [7]), ([8], [9, 10, 11])])
    assert batch.input_ids_BS.shape == (2, 16)
    assert batch.input_ids_BS[0, :4].tolist() == [5, 6, 7, 0]
    assert batch.labels_BS[0, :4].tolist() == [IGNORED_LABEL, IGNORED_LABEL, 7, IGNORED_LABEL]
    assert (batch.num_scored, batch.num_tokens) == (4, 7)


def test_a_step_is_a_function_of_its_number(tokenizer: Any) -> None:
    first, second = TrainingSteps(CONFIG, tokenizer), TrainingSteps(CONFIG, tokenizer)
    assert torch.equal(first[3][1].input_ids_BS, second[3][1].input_ids_BS)
    assert not torch.equal(first[3][1].input_ids_BS, first[2][1].input_ids_BS)


def test_the_loss_does_not_depend_on_micro_batches(tokenizer: Any) -> None:
    model = tiny_model().float()
    totals = []
    for size in (2, 4):
        config = CONFIG.model_copy(update={"micro_batch_sequences": size})
        batches = TrainingSteps(config, tokenizer)[0]
        num_scored = sum(batch.num_scored for batch in batches)
        parts = [
            response_loss(model, b, num_scored=num_scored, aux_loss_weight=0.0, share=size / 4)[1]
            for b in batches
        ]
        totals.append(sum(float(part) for part in parts))
    assert totals[0] == pytest.approx(totals[1], rel=1e-5)


def test_a_killed_run_resumes_to_the_same_losses(tokenizer: Any, tmp_path: Path) -> None:
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    unbroken.mkdir()
    broken.mkdir()
    train(tiny_model().bfloat16(), tokenizer, CONFIG, unbroken)

    class KilledError(Exception):
        pass

    model = tiny_model().bfloat16()
    calls = 0

    def die_in_step_3(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > 6:  # two micro-batches a step
            raise KilledError

    model.register_forward_pre_hook(die_in_step_3)
    with pytest.raises(KilledError):
        train(model, tokenizer, CONFIG, broken)
    train(tiny_model().bfloat16(), tokenizer, CONFIG, broken)
    assert logged_losses(broken) == logged_losses(unbroken)
    assert len(logged_losses(broken)) == 4


def test_a_gradient_that_is_not_finite_is_never_saved(tokenizer: Any, tmp_path: Path) -> None:
    model = tiny_model().bfloat16()
    model.model.norm.weight.register_hook(lambda gradient: gradient * torch.inf)
    config = CONFIG.model_copy(update={"checkpoint_every_steps": 1})
    with pytest.raises(SlimWiseError, match=r"gradient norm is (inf|nan) at step 0: lower"):
        train(model, tokenizer, config, tmp_path)
    assert not (tmp_path / "state.safetensors").exists()


def test_the_schedule_warms_up_and_ends_near_zero() -> None:
    config = TrainConfig(steps=10, warmup_steps=2, learning_rate=1.0)
    rates = [learning_rate(step, config) for step in range(10)]
    assert rates[:3] == [0.5, 1.0, 1.0]
    assert rates[-1] == pytest.approx(1 / 8)
