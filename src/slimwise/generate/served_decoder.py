"""Which model a decoder's server loads, with which pool, and in which modes it is asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slimwise.core.vocabulary import DecoderId, ServingMode
from slimwise.engine.command import NO_POOLS
from slimwise.errors import BackboneError, ConfigError
from slimwise.generate.config import EvaluationConfig


@dataclass(frozen=True)
class ServedDecoder:
    """A model folder (absolute), the keep-set file of each pool, and the modes to ask in."""

    decoder: DecoderId
    model: Path
    modes: tuple[ServingMode, ...]
    pools: Mapping[str, Path]


def served_decoder(
    config: EvaluationConfig,
    *,
    decoder: DecoderId,
    backbone: Path,
    checkpoint: Path | None,
    keep_set: Path | None,
) -> ServedDecoder:
    """The full decoder on the backbone; a pruned one on its checkpoint, or as a pool of the former.

    checkpoint is the path of an exported folder's manifest. ConfigError if the two files do not fit
    the decoder, BackboneError if the folder is not a model.
    """
    if [checkpoint, keep_set].count(None) != (2 if decoder.is_full else 1):
        raise ConfigError(
            f"decoder {decoder} was given checkpoint {checkpoint} and keep set {keep_set}: the "
            "full decoder takes neither, a pruned one exactly one of them."
        )
    if keep_set is not None:
        pools = {str(decoder): keep_set.resolve()}
        return ServedDecoder(decoder, _model_folder(backbone), config.colocated_modes, pools)
    if checkpoint is not None:
        folder = _model_folder(checkpoint.parent)
        return ServedDecoder(decoder, folder, (ServingMode.PRUNED,), NO_POOLS)
    return ServedDecoder(decoder, _model_folder(backbone), (ServingMode.FULL,), NO_POOLS)


def _model_folder(path: Path) -> Path:
    folder = path.resolve()
    if not (folder / "config.json").is_file():
        raise BackboneError(
            f"{folder} is not a model folder: it has no config.json. Run the rule that writes it, "
            "or set backbone.model."
        )
    return folder
