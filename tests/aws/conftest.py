from __future__ import annotations

import logging

import pytest
from ministack import app

from tests.aws.account import Account


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    """An account whose policies are in force, with a role and a bucket to lend."""
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    monkeypatch.setattr(app, "AUTH", True)
    made = Account()
    made.role()
    made.bucket()
    return made
