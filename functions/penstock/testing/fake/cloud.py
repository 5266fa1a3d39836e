"""What exists in the fake cloud, whoever asks. Two drivers share nothing else. [UNIT-1]"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

from penstock.kernel.errors import DriverError, NoCapacity, QuotaReached, RateLimited, Shortage, Unknown, Unsatisfiable
from penstock.ports import Order
from penstock.testing.fake.faults import Birth, Faults
from penstock.testing.fake.machines import Machine
from penstock.testing.fake.offers import Offer

START = datetime(2026, 1, 1, tzinfo=UTC)
QUOTA = "fake/quota"
"""The scope of the account's quota."""


@dataclass
class Cloud:
    """The machines, the clock and the dice. `met` counts what went wrong, `calls` what was called.

    The quota counts what factories order, not what wells do; `most` is how many there were of that at once. `made` and
    `gone` are told of every machine: who tests with this has its agents live there.
    """

    clock: Callable[[], datetime] = lambda: START
    dice: Random = field(default_factory=lambda: Random(0))
    faults: Faults = field(default_factory=Faults)
    made: Callable[[Machine], None] = lambda machine: None
    gone: Callable[[Machine], None] = lambda machine: None
    machines: dict[str, Machine] = field(default_factory=dict)
    past: list[Machine] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    most: int = 0
    _last: dict[str, datetime] = field(default_factory=dict)
    _ordered: dict[str, int] = field(default_factory=dict)
    _count: int = 0

    def chance(self, rate: float, what: str) -> bool:
        """Whether something with this chance happens now; it is counted."""
        happens = rate > 0 and self.dice.random() < rate
        self.met[what] += happens
        return happens

    def begin(self, call: str, rate: float, apart: float = 0.0) -> None:
        """A call arrives. Raises DriverError by chance, or when it comes too soon after the last."""
        self.calls[call] += 1
        now, last = self.clock(), self._last.get(call)
        if apart and last and now - last < timedelta(seconds=apart):
            self.met[f"{call} too soon"] += 1
            raise RateLimited(f"one {call} every {apart:g} s", max(1, round(apart)), call)
        self._last[call] = now
        if self.chance(rate, f"{call} refused"):
            raise self._refusal(call)

    def _refusal(self, call: str) -> DriverError:
        never = self.faults.unsatisfiable if call == "create" else 0.0
        if self.chance(never, "never satisfied"):
            return Unsatisfiable("no such thing")
        return self.dice.choice(self.faults.errors)()

    def of(self, unit: str) -> list[Machine]:
        """The machines of a unit that exist, as far as a look for it shows them."""
        self.pass_time()
        found = [machine for machine in self.machines.values() if machine.unit == unit]
        seen = [each for each in found if (self.clock() - each.born).total_seconds() >= self.faults.unseen]
        if len(seen) < len(found):
            self.met["not seen yet"] += 1
        return seen

    def was_made(self, unit: str) -> bool:
        """Whether the cloud knows an order again, by its token."""
        return unit in self._ordered and not self.faults.forgets

    def run(self, order: Order, maker: str, offer: Offer) -> None:
        """Make a machine; now and then two, or one of which the caller does not hear. Raises DriverError."""
        self._check_there_is(order, offer)
        for _ in range(1 + self.chance(self.faults.twice, "made twice")):
            self._make(order, maker, offer)
        if self.chance(self.faults.lost, "answer lost"):
            raise Unknown("the connection was reset before there was an answer", "ConnectionReset")

    def _check_there_is(self, order: Order, offer: Offer) -> None:
        found = next((scope for scope in offer.scopes if scope in self.faults.short), None)
        if found:
            self.met["no capacity"] += 1
            raise NoCapacity(f"there is no {offer}", [Shortage(found, f"{offer}: none left")])
        if self._is_full(order):
            self.met["quota reached"] += 1
            why = f"{self.faults.quota} of {self.faults.quota} machines"
            raise QuotaReached(why, [Shortage(QUOTA, why, is_quota=True)])

    def _workers(self) -> int:
        return sum(machine.order.is_worker for machine in self.machines.values())

    def _is_full(self, order: Order) -> bool:
        quota = self.faults.quota
        return quota is not None and order.is_worker and self._workers() >= quota

    def _make(self, order: Order, maker: str, offer: Offer) -> None:
        if self._is_full(order):  # of the second machine for one call
            return
        count = self._ordered[order.id] = self._ordered.get(order.id, 0) + 1
        name = order.id if order.id not in self.machines else f"{order.id}+{count}"
        ailment = self.faults.ailing(Birth(self._count, offer, order, self.clock()), self.dice)
        machine = Machine(name, order, maker, offer, self.clock(), ailment)
        if ailment.reclaimed is not None:
            machine.ends, machine.why = machine.after(ailment.reclaimed), "taken back"
        self._count += 1
        self.machines[name] = machine
        self.most = max(self.most, self._workers())
        self.made(machine)

    def terminate(self, machine: Machine) -> None:
        """Tell a machine to go; now and then it takes its time. Telling it again changes nothing."""
        if machine.why == "destroyed":
            return
        is_late = self.chance(self.faults.lingers, "did not die at first")
        self.take(machine, "destroyed", self.faults.linger if is_late else 0.0)

    def take(self, machine: Machine, why: str, after: float = 0.0) -> None:
        """A machine goes, for whatever reason, in some seconds."""
        ends = self.clock() + timedelta(seconds=after)
        machine.ends, machine.why = min(machine.ends or ends, ends), why
        self.pass_time()

    def pass_time(self) -> None:
        """Let go what has come to its end."""
        now = self.clock()
        for machine in [each for each in self.machines.values() if each.ends and not each.exists(now)]:
            del self.machines[machine.id]
            self.past.append(machine)
            self.met[machine.why] += 1
            self.gone(machine)

    def listed(self, maker: str) -> Sequence[str]:
        """The units of a maker as a list shows them, which may be behind."""
        self.pass_time()
        found = [
            machine.unit for machine in self.machines.values() if machine.maker == maker and self._is_seen(machine)
        ]
        if self.chance(self.faults.stale, "stale list"):
            found = found[:-1]
        return list(dict.fromkeys([*found, *self._ghosts(maker)]))

    def _is_seen(self, machine: Machine) -> bool:
        is_new = (self.clock() - machine.born).total_seconds() < self.faults.lag
        self.met["not listed yet"] += is_new
        return not is_new

    def _ghosts(self, maker: str) -> Iterator[str]:
        ghost = timedelta(seconds=self.faults.ghost)
        for machine in reversed(self.past if ghost else ()):
            if machine.ends is None or self.clock() - machine.ends >= 2 * ghost:
                return  # it is in order of its ends, but for what was looked at late
            if machine.maker == maker and self.clock() - machine.ends < ghost:
                self.met["listed after its end"] += 1
                yield machine.unit
