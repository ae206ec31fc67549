"""Whether a model can be distilled, by its configuration alone. Torch-free."""

from slimwise.backbones.base import Config
from slimwise.backbones.registry import backbone_for
from slimwise.errors import BackboneError

_REMEDY = "clear distillation.rules and distillation.decoders"


def check_distillable(name: str, config: Config) -> None:
    """Raise BackboneError if the model has no shared expert to train beside, or is quantised."""
    model_type = str(config.get("model_type"))
    if not backbone_for(model_type).is_distillable:
        raise BackboneError(
            f"{name} is of model_type {model_type!r}, which cannot be distilled: no shared expert "
            f"to train beside is known for it. Use a model of a family that has one, or {_REMEDY}."
        )
    quantised = config.get("quantization_config")
    if quantised:
        raise BackboneError(
            f"{name} is quantised ({quantised.get('quant_method')}): trained weights would lie "
            f"under the scales of its own. Distil the model as it was before, or {_REMEDY}."
        )
