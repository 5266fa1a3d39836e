"""The settle function ends an attempt whose flow failed: called by its last step, or by EventBridge if it ended.

No flow ends an attempt whose script has begun: its agent's hello may have come after the flow failed. [JOB-1]
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock import bootstrap
from penstock.kernel.rows import check_form
from penstock.usecases.jobs import settle

log = Logger()
bootstrap.prepare("store", "queues", "flows")


@log.inject_lambda_context
@bootstrap.metered
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Settle the attempt that the event names."""
    detail = event.get("detail")
    if detail:
        job, _, attempt = detail["name"].rpartition("-")
        _settle(job, int(attempt), detail["status"], detail.get("cause"))
    else:
        check_form(event.get("form", 1))
        error = event.get("error") or {}
        _settle(event["job"], event["attempt"], error.get("Error"), error.get("Cause"))
    return {}


def _settle(job: str, attempt: int, error: str | None, cause: str | None) -> None:
    settle.settle(bootstrap.aws(), job, attempt, error, cause, unbegun=True)
