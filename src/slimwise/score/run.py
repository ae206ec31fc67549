"""Stage score-experts: every criterion's scores from the routing statistics."""

import logging
from pathlib import Path

import numpy as np
import pandas as pd

from slimwise.artifacts.expert_scores import write_expert_scores
from slimwise.artifacts.routing_stats import read_routing_stats
from slimwise.core.routing_stats import RoutingStats, mixed
from slimwise.core.scores import expert_scores
from slimwise.core.vocabulary import Criterion
from slimwise.errors import ConfigError
from slimwise.provenance import current_provenance
from slimwise.score.config import ScoreConfig

logger = logging.getLogger(__name__)


def run(config: ScoreConfig, *, stats: Path, out: Path) -> None:
    """Write one row per layer and expert with its score by every criterion."""
    components = read_routing_stats(stats)
    unknown = sorted(config.component_weights.keys() - components.keys())
    if unknown:
        raise ConfigError(
            f"scoring.component_weights names {unknown[0]}, but the statistics are of "
            f"{', '.join(components)}. Name one of these."
        )
    sums = mixed(components, config.component_weights)
    if not sums.tokens_LE.any():
        raise ConfigError(
            f"scoring.component_weights leaves no token of {', '.join(components)} to score "
            "experts by. Give one of them a weight above 0."
        )
    write_expert_scores(out, score_table(sums, config), current_provenance())
    logger.info(
        "scored %d layers x %d experts by %d criteria (%s gate); %d experts saw no token",
        sums.num_layers,
        sums.num_experts,
        len(Criterion),
        config.gate,
        int((sums.tokens_LE == 0).sum()),
    )


def score_table(stats: RoutingStats, config: ScoreConfig) -> pd.DataFrame:
    """Layer, expert, routed tokens, then one column per criterion."""
    layers, experts = np.indices((stats.num_layers, stats.num_experts))
    columns = {
        "layer": layers.ravel(),
        "expert": experts.ravel(),
        "tokens": stats.tokens_LE.flatten().numpy(),
    }
    for criterion in Criterion:
        scores_LE = expert_scores(stats, criterion, config.gate)
        columns[criterion.value] = scores_LE.flatten().numpy()
    return pd.DataFrame(columns)
