"""Operator schemas that a CUDA build of torchvision leaves undefined beside a CPU build of torch.

PyPI has only CUDA builds of torchvision. Beside torch+cpu its extension cannot load, and importing
torchvision (as transformers and vLLM's Qwen3.5 do) fails on the fake kernels of operators that
nobody declared. Declaring the two schemas is enough: no code here ever calls them.
"""

from importlib import metadata

import torch

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_kept_alive: list[torch.library.Library] = []


def define_missing_schemas() -> None:
    """Declare torchvision's nms schemas where its extension cannot load; harmless to call twice.

    Entry point of the group torch.backends, so it runs in every process that imports torch,
    engine workers and vLLM's model inspection included.
    """
    if _kept_alive or torch.version.cuda is not None or not _is_cuda_build():
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in _SCHEMAS:
        library.define(schema)
    _kept_alive.append(library)


def _is_cuda_build() -> bool:
    try:
        return not metadata.version("torchvision").endswith("+cpu")
    except metadata.PackageNotFoundError:
        return False
