"""How many experts a decode step reads."""


def expected_distinct_experts(num_experts: int, top_k: int, batch: float) -> float:
    """Experts that a step of `batch` sequences reads in one layer under uniform routing.

    m (1 - (1 - k/m)^B). SlimWise, Why.
    """
    return num_experts * (1 - (1 - top_k / num_experts) ** batch)
