import pytest
import torch

from slimwise.artifacts.expert_scores import read_expert_scores
from slimwise.artifacts.routing_stats import write_routing_stats
from slimwise.core.routing_stats import RoutingStats
from slimwise.core.vocabulary import ScoringGate
from slimwise.errors import ConfigError
from slimwise.provenance import current_provenance
from slimwise.score.config import ScoreConfig
from slimwise.score.run import run


def test_one_row_per_expert_with_every_criterion(tmp_path):
    sums = ([[4, 0]], [[2, 0]], [[12, 0]], [[8, 0]], [[1, 0]], [[4, 0]])
    stats = RoutingStats(*(torch.tensor(row, dtype=torch.float64) for row in sums))
    write_routing_stats(tmp_path / "stats", {"all": stats}, current_provenance())
    run(ScoreConfig(), stats=tmp_path / "stats", out=tmp_path / "scores")
    frame = read_expert_scores(tmp_path / "scores")
    assert frame.to_dict("records") == [
        {"layer": 0, "expert": 0, "tokens": 4, "mass": 2, "ean": 12, "reap": 2, "frequency": 1},
        {"layer": 0, "expert": 1, "tokens": 0, "mass": 0, "ean": 0, "reap": 0, "frequency": 0},
    ]
    softmax = ScoreConfig(gate=ScoringGate.SOFTMAX)
    run(softmax, stats=tmp_path / "stats", out=tmp_path / "scores")
    assert read_expert_scores(tmp_path / "scores")["reap"].tolist() == [1, 0]


def test_components_can_be_weighted_without_another_calibration(tmp_path):
    maths, code = (
        RoutingStats(*(torch.tensor([[n, 1]], dtype=torch.float64) for _ in range(6)))
        for n in (4, 10)
    )
    path, out = tmp_path / "stats", tmp_path / "scores"
    write_routing_stats(path, {"maths": maths, "code": code}, current_provenance())
    run(ScoreConfig(component_weights={"code": 0.5}), stats=path, out=out)
    assert read_expert_scores(out)["tokens"].tolist() == [9, 1.5]
    with pytest.raises(ConfigError, match=r"names tools.* of maths, code"):
        run(ScoreConfig(component_weights={"tools": 2}), stats=path, out=out)
    with pytest.raises(ValueError, match=r"component_weights\.code = -1"):
        ScoreConfig(component_weights={"code": -1})


def test_weights_that_leave_no_token_are_refused(tmp_path):
    """All scores would be 0, and the experts of the lowest ids be kept."""
    stats = RoutingStats(*(torch.ones(1, 2, dtype=torch.float64) for _ in range(6)))
    path = tmp_path / "stats"
    write_routing_stats(path, {"maths": stats}, current_provenance())
    config = ScoreConfig(component_weights={"maths": 0})
    with pytest.raises(ConfigError, match=r"component_weights .* of maths .* above 0"):
        run(config, stats=path, out=tmp_path / "scores")
