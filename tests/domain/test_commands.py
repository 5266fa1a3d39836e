"""Requests that use cases take: what a caller need not say, and how large what they say may be."""

from __future__ import annotations

import dataclasses
from typing import get_type_hints

import pytest

from penstock.domain import commands
from penstock.domain.commands import SubmitJob
from penstock.kernel.limits import Bound

COMMANDS = [
    each for each in vars(commands).values() if dataclasses.is_dataclass(each) and each.__module__ == commands.__name__
]


def test_a_request_for_a_job_needs_a_script_and_nothing_else() -> None:
    asked = SubmitJob("#!/bin/bash\n")
    assert (asked.script, asked.path) == ("#!/bin/bash\n", "job.sh")
    said = {each.name for each in dataclasses.fields(asked) if getattr(asked, each.name) not in (None, [], {})}
    assert said == {"script", "path"}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.__name__)
def test_every_field_of_a_request_is_described(command: type) -> None:
    hints = get_type_hints(command, include_extras=True)
    for name, hint in hints.items():
        texts = [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, str)]
        assert texts or any(isinstance(each, Bound) for each in getattr(hint, "__metadata__", ())), name
