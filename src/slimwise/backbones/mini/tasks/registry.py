"""The task families by name: graded, practised in training, or only filling the expert pool."""

from collections.abc import Mapping
from types import MappingProxyType

from slimwise.backbones.mini.tasks import background
from slimwise.backbones.mini.tasks.code import CodeFamily
from slimwise.backbones.mini.tasks.item import TaskFamily
from slimwise.backbones.mini.tasks.maths import MathsFamily
from slimwise.backbones.mini.tasks.tools import ToolsFamily


def _by_name(*families: TaskFamily) -> Mapping[str, TaskFamily]:
    return MappingProxyType({family.name: family for family in families})


GRADED = _by_name(MathsFamily(max_steps=4), CodeFamily(), ToolsFamily())
# Training practises one step more than is graded, which makes four steps nearly certain.
PRACTISED = _by_name(MathsFamily(max_steps=5), CodeFamily(), ToolsFamily())
BACKGROUND = _by_name(*background.FAMILIES)
