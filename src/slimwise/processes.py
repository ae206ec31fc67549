"""Data parallelism over the processes that torchrun starts; one process needs none of it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from slimwise.errors import ConfigError
from slimwise.resources import GPUS_VARIABLE

Item = TypeVar("Item")

# Processes end their shares at different times; torchrun ends them all when one dies.
_PATIENCE = timedelta(days=1)


@dataclass(frozen=True)
class Processes:
    """This process's number among all that do one stage's work."""

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

    def gathered(self, tensor: Tensor) -> list[Tensor]:
        """Every process's tensor of that shape, in the order of their ranks."""
        if self.count == 1:
            return [tensor]
        found = [torch.empty_like(tensor) for _ in range(self.count)]
        dist.all_gather(found, tensor)
        return found

    def wait(self) -> None:
        """Return once every process is here."""
        if self.count > 1:
            dist.barrier()


@contextmanager
def joined_processes(device: torch.device) -> Iterator[Processes]:
    """All processes of torchrun's group, or this one alone; they exchange tensors of the device."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Processes(0, 1)
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=_PATIENCE)
    try:
        yield Processes(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


def local_devices(kind: str, count: int = 1) -> tuple[torch.device, ...]:
    """Where this process computes: on its own GPUs of those that are visible, or on the CPU.

    kind is auto, cpu or cuda; auto is the CPU only of a host that was not said to have GPUs.
    ConfigError if too few GPUs are visible.
    """
    num_visible = torch.cuda.device_count()
    is_gpu_host = num_visible > 0 or GPUS_VARIABLE in os.environ
    if kind == "cpu" or (kind == "auto" and not is_gpu_host):
        return (torch.device("cpu"),)
    first = int(os.environ.get("LOCAL_RANK", "0")) * count
    if first + count > num_visible:
        raise ConfigError(
            f"device '{kind}' needs {count} GPUs a process, {first + count} in all, but "
            f"{num_visible} are visible. Set resources.gpus to what this host has, or the stage's "
            "device to cpu."
        )
    torch.cuda.set_device(first)
    return tuple(torch.device("cuda", first + number) for number in range(count))
