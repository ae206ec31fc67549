"""Which experts a decoder keeps, from their scores. Torch-free."""

from collections.abc import Sequence

from slimwise.core.keep_set import KeepSet
from slimwise.errors import ConfigError


def top_experts(scores_E: Sequence[float], num_kept: int) -> tuple[int, ...]:
    """Ids of the num_kept best experts of a layer, ascending; of equal scores the lower id wins.

    SlimWise, What, item 1.
    """
    ranked = sorted(range(len(scores_E)), key=lambda expert: (-scores_E[expert], expert))
    return tuple(sorted(ranked[:num_kept]))


def select_keep_set(
    scores_LE: Sequence[Sequence[float]], num_kept: int, *, top_k: int, backbone: str
) -> KeepSet:
    """The num_kept best experts of every layer; ConfigError if the model cannot keep so many.

    SlimWise, What, item 1.
    """
    num_experts = len(scores_LE[0])
    check_num_kept(num_kept, num_experts=num_experts, top_k=top_k, backbone=backbone)
    kept = tuple(top_experts(scores_E, num_kept) for scores_E in scores_LE)
    return KeepSet(kept, num_experts, top_k)


def check_num_kept(num_kept: int, *, num_experts: int, top_k: int, backbone: str) -> None:
    """Raise ConfigError unless top_k <= num_kept <= num_experts. SlimWise, What, item 1."""
    remedy = f"Set selection.num_kept to {top_k}..{num_experts}."
    if num_kept < top_k:
        raise ConfigError(
            f"num_kept={num_kept} is below top_k={top_k} for {backbone}: the router could not pick "
            f"{top_k} experts. {remedy}"
        )
    if num_kept > num_experts:
        raise ConfigError(
            f"num_kept={num_kept} is above num_experts={num_experts} of {backbone}: there are no "
            f"more to keep. {remedy}"
        )
