"""BFCL v4's single-turn categories, and the published way to average over them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Language(StrEnum):
    """Of the functions on offer."""

    PYTHON = "Python 3"
    JAVA = "Java 8 SDK"
    JAVASCRIPT = "JavaScript"


class Expects(StrEnum):
    """What a right answer to an item of the category is."""

    CALLS = "calls"
    ANY_CALL = "any_call"
    NO_CALL = "no_call"


@dataclass(frozen=True)
class Category:
    """A file of the data set."""

    num_items: int
    expects: Expects = Expects.CALLS
    language: Language = Language.PYTHON


CATEGORIES: Mapping[str, Category] = MappingProxyType(
    {
        "simple_python": Category(400),
        "simple_java": Category(100, language=Language.JAVA),
        "simple_javascript": Category(50, language=Language.JAVASCRIPT),
        "multiple": Category(200),
        "parallel": Category(200),
        "parallel_multiple": Category(200),
        "irrelevance": Category(240, Expects.NO_CALL),
        "live_simple": Category(258),
        "live_multiple": Category(1053),
        "live_parallel": Category(16),
        "live_parallel_multiple": Category(24),
        "live_irrelevance": Category(884, Expects.NO_CALL),
        "live_relevance": Category(16, Expects.ANY_CALL),
    }
)


@dataclass(frozen=True)
class Pooled:
    """Categories of which every item counts alike."""

    categories: tuple[str, ...]


@dataclass(frozen=True)
class Averaged:
    """Means that count alike, however many items each is over."""

    means: tuple["Pooled | Averaged", ...]


Mean = Pooled | Averaged


def _averaged(*categories: str) -> Averaged:
    return Averaged(tuple(Pooled((category,)) for category in categories))


_SIMPLE = _averaged("simple_python", "simple_java", "simple_javascript")
MEANS: Mapping[str, Mean] = MappingProxyType(
    {
        "bfcl_v4_live_ast": Pooled(
            ("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple")
        ),
        "bfcl_v4_non_live_ast": Averaged(
            (_SIMPLE, *_averaged("multiple", "parallel", "parallel_multiple").means)
        ),
        "bfcl_v4_relevance": Pooled(("live_relevance",)),
        "bfcl_v4_irrelevance": _averaged("irrelevance", "live_irrelevance"),
    }
)
"""The leaderboard's scores by the benchmark that each is of."""


def members(mean: Mean) -> tuple[str, ...]:
    """The categories that a mean is over."""
    if isinstance(mean, Pooled):
        return mean.categories
    return tuple(category for part in mean.means for category in members(part))


def item_weights(benchmark: str, item_ids: Sequence[str]) -> list[float]:
    """Weights, 1 on average, under which the mean over the items is the published one.

    Those of BFCL average over categories; of other benchmarks all items count alike.
    """
    if benchmark not in MEANS:
        return [1.0] * len(item_ids)
    counts = Counter(map(category_of, item_ids))
    shares = _shares(MEANS[benchmark], counts)
    return [shares[category_of(item)] * len(item_ids) for item in item_ids]


def _shares(mean: Mean, counts: Mapping[str, int]) -> dict[str, float]:
    """The weight of one item of each category that has any; all items' weights sum to 1."""
    if isinstance(mean, Pooled):
        present = [category for category in mean.categories if counts[category]]
        total = sum(counts[category] for category in present)
        return {category: 1 / total for category in present}
    parts = [shares for part in mean.means if (shares := _shares(part, counts))]
    return {name: share / len(parts) for shares in parts for name, share in shares.items()}


def category_of(item_id: str) -> str:
    """The category that an item belongs to, which its id begins with."""
    return item_id.rpartition("_")[0]
