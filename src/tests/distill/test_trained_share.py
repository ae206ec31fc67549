"""The published shapes on meta tensors, so that nothing is allocated."""

import pytest
import torch
import transformers

from slimwise.backbones.published import PublishedShape, published_config
from slimwise.backbones.registry import backbone_for
from slimwise.backbones.trainable import trainable_family
from slimwise.core.keep_set import KeepSet
from slimwise.core.moe import GateActivation, GateRule
from slimwise.distill.student import make_student


@pytest.mark.parametrize(
    ("published", "percent"),
    [(PublishedShape.QWEN3_6_35B_A3B, 0.4186), (PublishedShape.GEMMA4_26B_A4B, 2.1188)],
)
def test_trained_share_of_the_whole_unpruned_model(published, percent):
    """The paper's 0.42 % and 2.12 %, vision tower included."""
    config = published_config(published)
    shape = backbone_for(config.model_type).shape(config.to_dict())
    with torch.device("meta"):
        model = transformers.AutoModelForImageTextToText.from_config(config)
        num_parameters = sum(parameter.numel() for parameter in model.parameters())
        routers = trainable_family(config.model_type).modules(model).routers
        assert len(routers) == shape.num_layers
        kept = tuple(range(shape.num_experts // 2))
        keep_set = KeepSet((kept,) * shape.num_layers, shape.num_experts, shape.top_k)
        student = make_student(model, keep_set, GateRule(GateActivation.SOFTMAX, True))
    trained = sum(parameter.numel() for parameter in student.trained().values())
    assert 100 * trained / num_parameters == pytest.approx(percent, abs=5e-5)


@pytest.mark.parametrize("wrapper", ["qwen3_5_moe", "gemma4"])
def test_every_model_type_of_a_distillable_family_has_modules_to_train(wrapper):
    backbone = backbone_for(wrapper)
    assert backbone.is_distillable
    assert len({trainable_family(each).shared_width_key for each in backbone.model_types}) == 1
