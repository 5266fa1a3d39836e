"""A machine of the fake cloud: how long it exists, and what it can do at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.ports import Order
from penstock.testing.fake.faults import Ailment
from penstock.testing.fake.offers import Offer


@dataclass(eq=False)
class Machine:
    """It carries the tags of its order and of the factory or well that ordered it.

    `ends` is when it is gone, of one that was told to go or is taken back; `why`, which of both. `cut_until` is when
    its network works again.
    """

    id: str
    order: Order
    maker: str
    offer: Offer
    born: datetime
    ailment: Ailment
    ends: datetime | None = None
    why: str = ""
    cut_until: datetime | None = None

    @property
    def unit(self) -> str:
        """The unit that it was ordered as. Of two machines for one call both have the same."""
        return self.order.id

    def exists(self, now: datetime) -> bool:
        """Whether it is not gone yet."""
        return self.ends is None or now < self.ends

    def works(self, now: datetime) -> bool:
        """Whether anything runs on it: it is up, and not broken yet."""
        ailment = self.ailment
        is_broken = ailment.is_mute or (ailment.breaks is not None and now >= self.after(ailment.breaks))
        return self.exists(now) and now >= self.after(ailment.boot) and not is_broken

    def reaches(self, now: datetime) -> bool:
        """Whether its network reaches anybody."""
        if self.cut_until and now < self.cut_until:
            return False
        start, end = self.ailment.cut or (0.0, 0.0)
        return not self.after(start) <= now < self.after(end)

    def says(self, now: datetime) -> str:
        """What it says of itself, as a health check would; empty when all is well."""
        ailment = self.ailment
        if ailment.reports is not None and now >= self.after(ailment.reports):
            return "it is broken"
        is_leaving = ailment.reclaimed is not None and ailment.notice > 0
        if is_leaving and now >= self.after((ailment.reclaimed or 0.0) - ailment.notice):
            return "it is taken back"
        return ""

    def after(self, seconds: float) -> datetime:
        """So many seconds after it was made."""
        return self.born + timedelta(seconds=seconds)
