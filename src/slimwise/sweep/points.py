"""The points of a deployment: each load in each of the ways in which it is asked."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from slimwise.core.vocabulary import Deployment, Phase
from slimwise.sweep.bench import Load
from slimwise.sweep.config import LoadConfig
from slimwise.sweep.deployments import Swept, SweptArm


@dataclass(frozen=True)
class Point:
    """One load of one arm, by which the phase is timed; digest tells it from every other."""

    digest: str
    arm: SweptArm
    phase: Phase
    load: Load


def points(config: LoadConfig, swept: Swept, identity: str) -> Iterator[Point]:
    """Every point in the order of its measurement; identity is a digest of what they share."""
    for arm in swept.arms:
        loads = [(Phase.DECODE, _load(config, users, arm.body)) for users in config.concurrency]
        if config.prefill_requests and swept.deployment is Deployment.COLOCATED:
            prompts = _load(config, config.prefill_requests, arm.prefill_body, output_tokens=1)
            # A server's first prompts wait for kernels that are compiled when first called.
            warm = replace(prompts, num_warmups=prompts.num_requests)
            loads.insert(0, (Phase.PREFILL, warm))
        for phase, load in loads:
            digest = f"{identity}-{arm.mode}-{arm.pool}-{phase}-{load.concurrency}"
            yield Point(digest, arm, phase, load)


def _load(
    config: LoadConfig, users: int, body: dict[str, Any], output_tokens: int | None = None
) -> Load:
    return Load(
        concurrency=users,
        num_requests=max(users, config.min_requests),
        prompt_tokens=config.prompt_tokens,
        output_tokens=output_tokens or config.output_tokens,
        seed=config.seed,
        body=body,
    )
