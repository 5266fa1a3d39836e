"""A site with an environment, and a job that asks for it."""

from __future__ import annotations

from datetime import datetime

from penstock.domain.commands import SubmitJob
from penstock.domain.users.users import User
from penstock.testing.twin import Twin
from penstock.usecases.jobs import submit
from penstock.usecases.site import apply
from tests.usecases.conftest import SITE

PRODUCTION = """
[environments.production]
owners = ["ada", "oxide:hubris"]
privileges = ["target.lab"]
reviewers = ["bert", "ada"]
logins = ["Octo"]
"""
SCRIPT = """#!/bin/bash
#: name = "deploy"
#: variety = "basic"
#: target = "lab"
#: environment = "production"
echo deployed
"""


def user(name: str, created: datetime, *privileges: str) -> User:
    return User(name=name, created=created, version=1, privileges=privileges)


def reviewing(twin: Twin, more: str = "", environment: str = PRODUCTION) -> None:
    """Let the site have the environment; `more` is what it says besides."""
    apply.apply(twin.on, "admin", SITE + environment + more, "site.toml")
    twin.run()


def asks(twin: Twin, by: User, script: str = SCRIPT) -> str:
    """Submit the job."""
    return submit.submit(twin.on, by, SubmitJob(script), None)
