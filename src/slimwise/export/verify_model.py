"""Verification of any checkpoint folder, exported here or fetched from elsewhere."""

from pathlib import Path

from slimwise.artifacts.manifest import verify_if_exported
from slimwise.artifacts.weight_files import read_weights
from slimwise.export.verify import verify_folder


def verify_model(folder: Path) -> str:
    """One line on what the folder holds, after verify_folder and, if it has one, its manifest.

    ArtifactError names files of an exported checkpoint that are no longer what its manifest says.
    """
    found = verify_folder(folder)
    has_manifest = verify_if_exported(folder)
    entries = read_weights(folder).values()
    shape = found.shape
    size_gib = sum(entry.num_bytes for entry in entries) / 2**30
    return (
        f"{folder}: {found.config['model_type']}, {shape.num_layers} MoE layers x "
        f"{shape.num_experts} experts, top-{shape.top_k}, {len(entries)} tensors, "
        f"{size_gib:.3f} GiB: whole" + (", as its manifest says" if has_manifest else "")
    )
