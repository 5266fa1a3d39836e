"""The schedule function: claims, grants, resizes, and jobs that wait for others. Triggered by SQS."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock import bootstrap
from penstock.usecases.jobs import flow, prerequisites, settle
from penstock.usecases.pools import resize, scheduler, serving

log = Logger()
bootstrap.prepare("store", "queues", "flows")


def step(message: dict[str, Any]) -> None:
    """Take the step that a message names."""
    on = bootstrap.aws()
    match message:
        case {"do": "acquire", "job": job, "attempt": attempt, "step": number, "token": token}:
            scheduler.acquire(on, job, attempt, number, token)
        case {"do": "serve", "pools": [*pools], "group": group}:
            serving.serve(on, pools, group)
        case {"do": "granted", "units": [*units], "warm": [*warm]}:
            serving.granted(on, units, warm)
        case {"do": "resize", "pool": pool}:
            resize.resize(on, pool)
        case {"do": "start", "job": job}:
            flow.start(on, job)
        case {"do": "judge", "job": job}:
            prerequisites.judge(on, job)
        case {"do": "wake", "job": job, "after": after}:
            settle.notify_dependents(on, job, after)
        case {"do": "github", "message": dict(hint)}:
            on.forge.enqueue(hint)
        case _:
            log.error("unknown message", extra={"do": message.get("do")})


@log.inject_lambda_context
@bootstrap.metered
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take the steps of a batch; those that fail are delivered again."""
    return bootstrap.each(event, step)
