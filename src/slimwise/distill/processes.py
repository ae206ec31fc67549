"""Data parallelism over the processes that torchrun starts; one process needs none of it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

Item = TypeVar("Item")


@dataclass(frozen=True)
class Processes:
    """This process's number among all that distil one student."""

    rank: int
    count: int

    @property
    def is_first(self) -> bool:
        """True for the process that writes files."""
        return self.rank == 0

    def share(self, items: Sequence[Item]) -> Sequence[Item]:
        """The items that are this process's to compute."""
        return items[self.rank :: self.count]

    def add_up(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its sum over all processes."""
        if self.count == 1:
            return
        for tensor in tensors:
            dist.all_reduce(tensor)

    def wait(self) -> None:
        """Return once every process is here."""
        if self.count > 1:
            dist.barrier()


@contextmanager
def joined_processes(device: torch.device) -> Iterator[Processes]:
    """All processes of torchrun's group, or this one alone."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes(0, 1)
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Processes(dist.get_rank(), count)
    finally:
        dist.destroy_process_group()


def local_device(kind: str) -> torch.device:
    """The device of this process: its own GPU of those of the host, or the CPU."""
    if kind == "cpu" or (kind == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return device
