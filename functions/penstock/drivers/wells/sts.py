"""The `sts` well: AWS credentials that are revoked when their lease ends. See docs/operators/wells/sts.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from penstock.domain.account import Thing
from penstock.domain.units.units import CleanProof
from penstock.drivers.wells.aws import settings as aws_settings
from penstock.drivers.wells.aws.calls import Connect, connect
from penstock.drivers.wells.aws.sessions import PUBLIC, LentRole
from penstock.ports import NotYet, Order, Ready


class StsWell:
    """Lends sessions of one role. It has no state of its own: the role's inline policies have what it needs later."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        environment: Mapping[str, str],
        client: Connect = connect,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._role = LentRole(aws_settings.sts(settings), environment, client)
        self._clock = clock

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, one sentence each. Calls no service."""
        return aws_settings.sts_complaints(settings)

    @staticmethod
    def objections(options: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with options: there are none. The site alone decides what sessions may do."""
        return [f"the sts driver has no option {key!r}; it has no options" for key in options]

    def create(self, order: Order) -> Ready | NotYet:
        """A session for the lease. Repeated, it returns a new one, which the same denial revokes."""
        session = self._role.session(order)
        return Ready({**order.settings, **session.metadata}, expires=session.expires, public=PUBLIC)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Deny everything to all sessions of the unit; a proof when IAM shows the denial. [SEC-1]"""
        revoked = self._role.revoke(unit, now)
        if isinstance(revoked, NotYet):
            return revoked
        return CleanProof(by="sts", time=now, checked=revoked.checked)

    def list(self) -> Iterable[str]:
        """Nothing: AWS does not list sessions. Each has its row before it is made, and expires within an hour.

        The sweep lists each well every few minutes, so this also removes denials that are not needed any more. [UNIT-1]
        """
        self._role.denials.tidy(self._clock())
        return ()

    def things(self) -> Iterable[Thing]:
        """The denials on the role. AWS does not list sessions: each expires by itself."""
        return self._role.denials.things()
