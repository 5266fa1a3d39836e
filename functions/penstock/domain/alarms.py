"""Alarms of a deployment and its dead letters: what an alarm's name means, and what comes first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum

from penstock.kernel.frozen import dataclass

SECTIONS = frozenset(
    {
        "ApiErrors", "BootFailures", "BytesLost", "CanaryFailing", "DeadLetters", "DiffAge", "FailedNudges",
        "FlowsFailed", "FlowsThrottled", "ForgottenHold", "FunctionErrors", "FunctionThrottles", "JobsErrored",
        "Leftovers", "Misconfigured", "NotPutBack", "OldestWait", "Quarantined", "QueueAge", "StoreUnlisted", "Strays",
        "SweepLate", "SweepStopped", "TableThrottled", "UnknownErrors", "Unlisted", "Untidy",
    }
)  # fmt: skip
"""The sections of docs/operators/operations.md that alarms have."""

MEANING_ENDS = ". What to do:"
"""What an alarm means stands before this in its description, its runbook behind it: infra/alarms.py."""

RUNBOOKS = "docs/operators/operations.md"


class AlarmState(StrEnum):
    """How an alarm is."""

    RAISED = "alarm"
    UNKNOWN = "insufficient_data"
    OK = "ok"


ORDER = (AlarmState.RAISED, AlarmState.UNKNOWN, AlarmState.OK)
"""Which come first."""


@dataclass(frozen=True)
class Alarm:
    """One alarm. `section` says what it is about, `of` which function, queue or kind; "" for the whole deployment."""

    name: str
    section: str
    of: str
    what: str
    state: AlarmState
    since: datetime | None
    reason: str

    @property
    def runbook(self) -> str:
        """The section that says what to do."""
        return f"{RUNBOOKS}#{self.section.lower()}"


@dataclass(frozen=True)
class DeadLetterQueue:
    """The queue that has what a function could not do. `of` is the queue from which its messages came."""

    of: str
    messages: int
    url: str
    arn: str


def read_name(name: str, deployment: str) -> tuple[str, str] | None:
    """The section of an alarm of a deployment, and what it is of; None for the alarm of another.

    Another deployment's name may begin with this one's: its alarms do so too, but name no section behind it.
    """
    section, _, of = name.removeprefix(f"{deployment}-").partition("-")
    return (section, of) if name.startswith(f"{deployment}-") and section in SECTIONS else None


def in_order(alarms: Iterable[Alarm]) -> Sequence[Alarm]:
    """Those first that are raised, each kind by name."""
    return sorted(alarms, key=lambda alarm: (ORDER.index(alarm.state), alarm.name))
