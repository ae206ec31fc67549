"""Where a model lies: the committed miniature, a folder, or the hub."""

from importlib import resources
from pathlib import Path

from slimwise.errors import BackboneError, ConfigError
from slimwise.inspect.config import BackboneConfig
from slimwise.paths import MODEL_FILES

_PATH_STARTS = ("/", ".", "~")


def model_folder(config: BackboneConfig, trained: Path | None) -> Path:
    """The absolute folder of the model, fetched from the hub if it lies there.

    BackboneError if there is no such folder and the hub cannot give it.
    """
    if config.model == "embedded":
        return Path(str(resources.files("slimwise.backbones.mini") / "checkpoint")).resolve()
    if config.model == "trained":
        if trained is None:
            raise ConfigError("backbone.model = 'trained' needs the folder of a trained backbone.")
        return trained.resolve()
    folder = Path(config.model).expanduser()
    if folder.is_dir() or config.model.startswith(_PATH_STARTS):
        return folder.resolve()
    return _from_hub(config.model, config.revision)


def _from_hub(model: str, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        return Path(snapshot_download(model, revision=revision, allow_patterns=list(MODEL_FILES)))
    # Every failure of the hub's client is one of these: its HTTP errors are OSErrors.
    except (OSError, HFValidationError) as failure:
        reason = str(failure).strip().splitlines()[0]
        raise BackboneError(
            f"backbone.model = {model!r} is neither a folder here nor to be had from the hub "
            f"(revision {revision or 'default'}): {reason} Set backbone.model to a local folder, "
            "or fetch the model with network access first."
        ) from failure
