"""A job's store: values by name, for the job and its user to share."""

from __future__ import annotations

from typing import Annotated

from penstock.api.app import Caller, Router
from penstock.api.shapes import view
from penstock.domain.jobs.store import Value
from penstock.domain.users.users import READ, SUBMIT
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases.jobs import jobs, store
from penstock.usecases.jobs.store import NewValue

router = Router("job store")


@dataclass(frozen=True)
class PutValue:
    """A value to put into a job's store."""

    value: Annotated[str, "The value."]
    secret: Annotated[bool, "Whether only the job may read it."] = False


@dataclass(frozen=True)
class ValueView:
    """A value in a job's store."""

    name: Annotated[str, "Its name."]
    value: Annotated[str | None, "The value; null if it is secret."]
    secret: Annotated[bool, "Whether only the job may read it."]
    source: Annotated[str, "The user who put it; empty if the job did."]
    time: Annotated[str, "When it was put, as RFC 3339."]


@dataclass(frozen=True)
class ValuePage:
    """All values in a job's store, by name."""

    items: Annotated[list[ValueView], "The values."]
    next: Annotated[str | None, "Always null: all values fit into one page."]


@router.get("/v1/jobs/{job}/store", "List the values in a job's store", READ)
def list_values(on: System, user: Caller, job: str) -> ValuePage:
    found = store.list_values(on, jobs.find(on, user, job))
    return ValuePage([show(row) for row in found], None)


@router.get("/v1/jobs/{job}/store/{name}", "Show a value in a job's store", READ)
def get_value(on: System, user: Caller, job: str, name: str) -> ValueView:
    return show(store.show(on, jobs.find(on, user, job), name))


@router.put("/v1/jobs/{job}/store/{name}", "Put a value into a job's store", SUBMIT)
def put_value(on: System, user: Caller, job: str, name: str, ask: PutValue) -> ValueView:
    found = jobs.find(on, user, job)
    return show(store.put(on, found, NewValue(name, ask.value, ask.secret, user.name)))


def show(row: Value) -> ValueView:
    """A value, unless it is secret. [SEC-1]"""
    return view(ValueView, row, value=None if row.is_secret else row.text, secret=row.is_secret, source=row.by)
