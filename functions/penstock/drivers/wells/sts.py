"""The `sts` well: AWS credentials that die with their lease. See docs/operators/wells/sts.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.drivers.wells.aws import keys
from penstock.drivers.wells.aws.calls import Connect, connect
from penstock.drivers.wells.aws.lent import Lent
from penstock.drivers.wells.aws.sessions import PUBLIC
from penstock.ports import NotYet, Order, Ready


class StsWell:
    """Lends sessions of one role. It keeps nothing: what must be known later, is in the role's inline policies."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        surroundings: Mapping[str, str],
        client: Connect = connect,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._lent = Lent(keys.sts(settings), surroundings, client)
        self._clock = clock

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, a sentence each. Asks nobody."""
        return keys.sts_complaints(settings)

    @staticmethod
    def objections(options: Mapping[str, Any]) -> Sequence[str]:
        """What a session may do is the site's to say, and no job's."""
        return [f"the sts driver takes no option {key!r}; it takes none" for key in options]

    def create(self, order: Order) -> Ready | NotYet:
        """A session for the lease. Asked again, another one, with the same name and so with the same end."""
        session = self._lent.session(order)
        return Ready({**order.settings, **session.metadata}, expires=session.expires, public=PUBLIC)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Deny everything to all sessions of the unit, and look whether IAM has it so. [SEC-1]"""
        said = self._lent.revoke(unit, now)
        return said if isinstance(said, NotYet) else CleanProof(by="sts", time=now, checked=said.checked)

    def list(self) -> Iterable[str]:
        """None: AWS lists no sessions. Each has its row before it is made, and ends by itself within the hour.

        The sweep asks each well every few minutes, so denials that are needed no longer are taken away here. [UNIT-1]
        """
        self._lent.denials.tidy(self._clock())
        return ()
