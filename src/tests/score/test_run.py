import torch

from slimwise.artifacts.expert_scores import read_expert_scores
from slimwise.artifacts.routing_stats import write_routing_stats
from slimwise.core.routing_stats import RoutingStats
from slimwise.core.vocabulary import ScoringGate
from slimwise.provenance import current_provenance
from slimwise.score.config import ScoreConfig
from slimwise.score.run import run


def test_one_row_per_expert_with_every_criterion(tmp_path):
    sums = ([[4, 0]], [[2, 0]], [[12, 0]], [[8, 0]], [[1, 0]], [[4, 0]])
    stats = RoutingStats(*(torch.tensor(row, dtype=torch.float64) for row in sums))
    write_routing_stats(tmp_path / "stats", stats, current_provenance())
    run(ScoreConfig(), stats=tmp_path / "stats", out=tmp_path / "scores")
    frame = read_expert_scores(tmp_path / "scores")
    assert frame.to_dict("records") == [
        {"layer": 0, "expert": 0, "tokens": 4, "mass": 2, "ean": 12, "reap": 2, "frequency": 1},
        {"layer": 0, "expert": 1, "tokens": 0, "mass": 0, "ean": 0, "reap": 0, "frequency": 0},
    ]
    softmax = ScoreConfig(gate=ScoringGate.SOFTMAX)
    run(softmax, stats=tmp_path / "stats", out=tmp_path / "scores")
    assert read_expert_scores(tmp_path / "scores")["reap"].tolist() == [1, 0]
