"""Which model and pools each phase is served from, told from what a practitioner names."""

from dataclasses import dataclass
from pathlib import Path

from slimwise.artifacts.checkpoint_digest import checkpoint_digest
from slimwise.artifacts.keep_set import read_keep_set
from slimwise.artifacts.pool_files import PoolFiles
from slimwise.artifacts.trained_record import read_trained_record
from slimwise.backbones.registry import inspect_checkpoint
from slimwise.core.vocabulary import Deployment, Phase, ServingMode
from slimwise.engine.config import DisaggregationConfig
from slimwise.engine.deployment import ServedModel
from slimwise.errors import ConfigError, KeepSetError

_POOL = "kept"
_OF_BOTH_PHASES = ("prefill_urls", "decode_urls", "prefill_port", "decode_port")


@dataclass(frozen=True)
class Served:
    """The full model, and the pruned decoder as a keep set of it, as a checkpoint, or as both.

    trained is the folder of what distillation trained for the keep set. phase is the one that is
    served here, where the other is on another host.
    """

    model: Path
    mode: ServingMode
    deployment: Deployment
    keep_set: Path | None = None
    trained: Path | None = None
    decode_checkpoint: Path | None = None
    phase: Phase | None = None


def colocated_model(served: Served) -> ServedModel:
    """The one model that answers in that mode; ConfigError says what else must be named.

    ArtifactError if the keep set is none.
    """
    if served.phase is not None:
        raise ConfigError(
            f"--phase {served.phase} is one server of a disaggregated deployment: add --deployment "
            f"{Deployment.DISAGGREGATED}, or leave it out."
        )
    _check_checkpoint_is_loaded(served, served.mode is ServingMode.PRUNED)
    if served.mode is ServingMode.FULL and served.keep_set is None:
        model = ServedModel(served.model.resolve())
    elif served.mode is ServingMode.PRUNED and served.decode_checkpoint is not None:
        model = ServedModel(_checked_checkpoint(served))
    else:
        model = _with_pool(served, served.mode)
    _check_pool_is_used(served, model)
    return model


def phase_models(served: Served) -> tuple[ServedModel, ServedModel]:
    """The models of prefill and decode; ConfigError says what else must be named.

    A pruned phase without a checkpoint is the full model with its keep set as a pool: every token
    of a prefill server belongs to the prompt, and a decode server knows where the prompt ends.
    """
    masked = {Phase.PREFILL: ServingMode.PRUNED, Phase.DECODE: ServingMode.SLIMWISE}
    full = ServedModel(served.model.resolve())
    _check_checkpoint_is_loaded(served, served.mode is not ServingMode.FULL)

    def of(phase: Phase) -> ServedModel:
        if not served.mode.prunes(phase):
            return full
        if served.decode_checkpoint is not None:
            return ServedModel(_checked_checkpoint(served))
        return _with_pool(served, masked[phase])

    models = of(Phase.PREFILL), of(Phase.DECODE)
    _check_pool_is_used(served, *models)
    return models


def check_layout_is_read(served: Served, layout: DisaggregationConfig) -> None:
    """ConfigError names the keys of the layout that say nothing of what is served here."""
    unread, remedy = [], ""
    if served.deployment is Deployment.COLOCATED:
        unread = sorted(layout.model_fields_set)
        remedy = f"Add --deployment {Deployment.DISAGGREGATED}, or leave them out."
    elif served.phase is not None:
        unread = [key for key in _OF_BOTH_PHASES if key in layout.model_fields_set]
        remedy = "Its port is --port; addresses are for the command that starts the router."
    if unread:
        what = "one server" if served.phase is None else f"--phase {served.phase}"
        raise ConfigError(f"--disaggregation names {', '.join(unread)}, unread by {what}. {remedy}")


def check_before_start(*models: ServedModel) -> None:
    """Raise what a server of one of the models would find out only after it has started.

    BackboneError of a folder that holds no supported model, ArtifactError of a pool's files,
    KeepSetError of a keep set that was chosen for another model.
    """
    for model in models:
        inspect_checkpoint(model.folder)
        for pool in model.pools.values():
            _check_pool(model.folder, PoolFiles.model_validate(pool))


def _check_pool(folder: Path, files: PoolFiles) -> None:
    chosen = read_keep_set(files.keep_set)
    if files.trained_folder is not None:
        read_trained_record(files.trained_folder)
    found = checkpoint_digest(folder)
    if chosen.backbone_digest != found:
        raise KeepSetError(
            f"{files.keep_set} was chosen for a {chosen.model_type} of digest "
            f"{chosen.backbone_digest[:12]}, {folder} has digest {found[:12]}. Serve the model it "
            "was chosen for."
        )


def _check_checkpoint_is_loaded(served: Served, is_loaded: bool) -> None:
    if served.decode_checkpoint is not None and not is_loaded:
        raise ConfigError(
            f"--decode-checkpoint {served.decode_checkpoint} is loaded by no server of mode "
            f"{served.mode} served {served.deployment}. Leave it out, or name mode "
            f"{ServingMode.SLIMWISE} with --deployment {Deployment.DISAGGREGATED}, or mode "
            f"{ServingMode.PRUNED}."
        )


def _check_pool_is_used(served: Served, *models: ServedModel) -> None:
    if any(model.pools for model in models):
        return
    if served.trained is not None:
        raise ConfigError(
            f"--trained {served.trained} goes with a keep set of the full model, and mode "
            f"{served.mode} served {served.deployment} masks by none: the full model has no "
            "distilled tensors, and a checkpoint was exported with its own. Leave --trained out, "
            "or name --keep-set without --decode-checkpoint and a mode that prunes."
        )
    if served.keep_set is not None and served.decode_checkpoint is None:
        raise ConfigError(
            f"--keep-set {served.keep_set} is read by no server of mode {served.mode} served "
            f"{served.deployment}. Leave it out, or name a mode that prunes."
        )


def _with_pool(served: Served, mode: ServingMode) -> ServedModel:
    if served.keep_set is None:
        remedy = "" if served.deployment is Deployment.COLOCATED else " or --decode-checkpoint"
        raise ConfigError(
            f"mode {served.mode} served {served.deployment} needs the kept experts: name them "
            f"with --keep-set{remedy}."
        )
    trained = None if served.trained is None else served.trained.resolve()
    pool = PoolFiles(keep_set=served.keep_set.resolve(), trained=trained)
    return ServedModel(served.model.resolve(), {_POOL: pool}, mode)


def _checked_checkpoint(served: Served) -> Path:
    """The checkpoint's folder; ConfigError if it keeps another number of experts than asked."""
    assert served.decode_checkpoint is not None
    folder = served.decode_checkpoint.resolve()
    if served.keep_set is None:
        return folder
    kept = set(read_keep_set(served.keep_set).keep_set.num_kept_per_layer)
    found = inspect_checkpoint(folder).shape.num_experts
    if kept != {found}:
        raise ConfigError(
            f"{folder} has {found} experts a layer, and {served.keep_set} keeps "
            f"{', '.join(map(str, sorted(kept)))}. Name the checkpoint that was exported by it."
        )
    return folder
