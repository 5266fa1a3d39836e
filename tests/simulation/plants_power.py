"""Bugs in switching hosts on and off, for the simulation to find."""

from __future__ import annotations

import pytest

from penstock.usecases.workers import power, presence


def lets_in_who_may_lose_its_power(patch: pytest.MonkeyPatch) -> None:
    """An agent is let in, whatever order for its host's power is unanswered."""
    patch.setattr(presence, "_is_shut", lambda order: False)


def switches_off_before_it_is_away(patch: pytest.MonkeyPatch) -> None:
    """An idle host is ordered to be switched off, and its slots stay free."""
    patch.setattr(power, "_leave", lambda *told: ())


def switches_what_is_in_use(patch: pytest.MonkeyPatch) -> None:
    """Who works on a host whose agent is away, is not asked."""
    patch.setattr(power, "_kept_on", lambda *told: set())


def nobody_switches_on_to_clean(patch: pytest.MonkeyPatch) -> None:
    """A host that lost its power with a job stays off."""
    patch.setattr(power, "switch_on_to_clean", lambda *told: None)


def switches_what_another_pool_has(patch: pytest.MonkeyPatch) -> None:
    """A host is switched while a job runs on it of another pool, or on a slot that the site took out."""
    patch.setattr(power, "_had", lambda *told: [])
