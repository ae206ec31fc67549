"""Which model a decoder's server loads, with which pool, and in which modes it is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slimwise.artifacts.manifest import exported_folder
from slimwise.artifacts.pool_files import PoolFiles
from slimwise.core.vocabulary import DecoderId, Deployment, Distillation, ServingMode
from slimwise.errors import BackboneError, ConfigError
from slimwise.generate.config import EvaluationConfig


@dataclass(frozen=True)
class ServedDecoder:
    """A model folder (absolute), the files of each pool, and the modes to ask in.

    decode_model is the folder of the decode server where prefill has a server of its own.
    """

    decoder: DecoderId
    model: Path
    modes: tuple[ServingMode, ...]
    pools: Mapping[str, PoolFiles]
    decode_model: Path | None = None

    @property
    def deployment(self) -> Deployment:
        """Disaggregated where decode has a model of its own."""
        apart = self.decode_model is not None
        return Deployment.DISAGGREGATED if apart else Deployment.COLOCATED

    @property
    def pool_files(self) -> tuple[Path, ...]:
        """Small files that tell the content of the pools: keep sets and manifests."""
        paths = [path for pool in self.pools.values() for path in (pool.keep_set, pool.trained)]
        return tuple(path for path in paths if path is not None)


def served_decoder(
    config: EvaluationConfig,
    *,
    decoder: DecoderId,
    backbone: Path,
    checkpoint: Path | None,
    pool: Sequence[Path],
    is_disaggregated: bool = False,
) -> ServedDecoder:
    """The full decoder on the backbone; a pruned one on its checkpoint, or as a pool of the former.

    A disaggregated one is on both, prefill on the backbone and decode on the checkpoint.

    checkpoint is the path of an exported folder's manifest; pool holds the keep set and, if the
    decoder is distilled, the manifest of what was trained. ConfigError if the files do not fit the
    decoder, ArtifactError if the manifest is no checkpoint's, BackboneError if the folder is not a
    model.
    """
    if (checkpoint is not None) + bool(pool) != (not decoder.is_full):
        raise ConfigError(
            f"decoder {decoder} was given checkpoint {checkpoint} and a pool of {len(pool)} files: "
            "the full decoder takes neither, a pruned one exactly one of them."
        )
    if is_disaggregated:
        if checkpoint is None:
            raise ConfigError(f"decoder {decoder} is disaggregated from its checkpoint: name it.")
        decode_model = _model_folder(exported_folder(checkpoint))
        modes = (ServingMode.SLIMWISE,)
        return ServedDecoder(decoder, _model_folder(backbone), modes, {}, decode_model)
    if pool:
        pools = {str(decoder): _pool_files(decoder, pool)}
        modes = config.colocated_modes(decoder)
        return ServedDecoder(decoder, _model_folder(backbone), modes, pools)
    if checkpoint is not None:
        folder = _model_folder(exported_folder(checkpoint))
        return ServedDecoder(decoder, folder, (ServingMode.PRUNED,), {})
    return ServedDecoder(decoder, _model_folder(backbone), (ServingMode.FULL,), {})


def _pool_files(decoder: DecoderId, paths: Sequence[Path]) -> PoolFiles:
    if len(paths) != 1 + (decoder.distilled is not Distillation.NONE):
        raise ConfigError(
            f"the pool of decoder {decoder} was given {len(paths)} files: it takes a keep set and, "
            "if the decoder is distilled, the manifest of what was trained."
        )
    return PoolFiles.of(paths)


def _model_folder(path: Path) -> Path:
    folder = path.resolve()
    if not (folder / "config.json").is_file():
        raise BackboneError(
            f"{folder} is not a model folder: it has no config.json. Run the rule that writes it, "
            "or set backbone.model."
        )
    return folder
