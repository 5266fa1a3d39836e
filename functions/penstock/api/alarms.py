"""The deployment's alarms, as CloudWatch has them, and its dead letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, TypeVar

from penstock.api.app import Operator, Router
from penstock.api.shapes import view
from penstock.domain import alarms
from penstock.domain.alarms import Alarm, AlarmState, DeadLetterQueue
from penstock.domain.users.users import READ
from penstock.kernel.errors import Unreached
from penstock.kernel.frozen import dataclass
from penstock.system import System

router = Router("alarms")

T = TypeVar("T")

Problem = Annotated[str | None, "Why they are not known now; null if they are. Then there are no items and no count."]
Runbook = Annotated[str, "What to do: the page of the documentation, and its section."]
StateName = Literal["alarm", "insufficient_data", "ok"]


@dataclass(frozen=True)
class AlarmView:
    """An alarm."""

    name: Annotated[str, "Its name in CloudWatch."]
    section: Annotated[str, "What it is about, such as `FunctionErrors`."]
    of: Annotated[str | None, "The function, queue or kind that it is about; null if there is only one."]
    what: Annotated[str, "What it means, in a sentence."]
    state: Annotated[StateName, "alarm: it is raised. insufficient_data: CloudWatch has not judged it yet."]
    since: Annotated[str | None, "Since when, as RFC 3339; null if CloudWatch does not say."]
    reason: Annotated[str, "Why, as CloudWatch says it."]
    runbook: Runbook


@dataclass(frozen=True)
class Alarms:
    """The alarms."""

    count: Annotated[int | None, "How many are raised."]
    of: Annotated[int | None, "How many there are."]
    problem: Problem
    items: Annotated[list[AlarmView], "All of them, those first that are raised."]


@dataclass(frozen=True)
class DeadLetterView:
    """A dead-letter queue."""

    of: Annotated[str, "The queue that it belongs to, such as `factory`."]
    messages: Annotated[int, "About how many messages it has. After a change this may be wrong for a minute."]
    url: Annotated[str, "Its URL in SQS."]
    arn: Annotated[str, "Its ARN."]


@dataclass(frozen=True)
class DeadLetters:
    """The dead-letter queues: messages that a function took twenty times in vain."""

    count: Annotated[int | None, "About how many messages they have together."]
    problem: Problem
    runbook: Runbook
    items: Annotated[list[DeadLetterView], "All queues, by name."]


@dataclass(frozen=True)
class AlarmsView:
    """The alarms and dead letters. Nothing in it changes while nothing happens."""

    alarms: Annotated[Alarms, "The alarms of the deployment."]
    dead_letters: Annotated[DeadLetters, "Its dead-letter queues."]


@router.get("/v1/alarms", "Show the deployment's alarms, and how many dead letters there are", READ)
def get_alarms(on: System, user: Operator) -> AlarmsView:
    return AlarmsView(_alarms(on), _dead_letters(on))


def _alarms(on: System) -> Alarms:
    found, problem = _read(on.alarms.read, "CloudWatch does not say how the alarms are")
    rows = [_alarm(row) for row in alarms.in_order(found)]
    raised = sum(row.state is AlarmState.RAISED for row in found)
    return Alarms(None if problem else raised, None if problem else len(rows), problem, rows)


def _dead_letters(on: System) -> DeadLetters:
    found, problem = _read(on.dead_letters.read, "SQS does not say how many dead letters there are")
    count = None if problem else sum(row.messages for row in found)
    return DeadLetters(count, problem, f"{alarms.RUNBOOKS}#deadletters", [_queue(row) for row in found])


def _alarm(row: Alarm) -> AlarmView:
    return view(AlarmView, row, of=row.of or None)


def _queue(row: DeadLetterQueue) -> DeadLetterView:
    return view(DeadLetterView, row)


def _read(ask: Callable[[], Sequence[T]], problem: str) -> tuple[Sequence[T], str | None]:
    """What a service of AWS says; and why it does not, if it does not. The rest of the page needs no such service."""
    try:
        return ask(), None
    except Unreached as error:
        return (), f"{problem}: {error}"
