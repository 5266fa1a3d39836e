"""The promises, asked of the records and of the rows that are left. Each check yields what was broken, in words.

Nothing here knows how a grant is decided. Whatever two processes did at once may have come in either order; only what
is certain counts: one thing came before another when it had ended before the other began.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from penstock.domain.jobs.jobs import Job
from penstock.domain.pools.pools import Claim, Lease, LeaseState, Pool, Slot, SlotState
from penstock.domain.units.units import Unit, UnitState
from penstock.kernel.rows import Key, Row
from penstock.testing.store import lease_now
from tests.concurrency.run import Left

OVERTAKEN = 8
"""How many may pass a waiting claim in one queue. Source: QUEUE-2."""

SHARE = 0.25
"""The part of an even share that every process must have committed: otherwise few have raced."""

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Hold:
    """Who had a slot with one fence: `take` and `give` are the records of the commits, `give` None if it never was."""

    fence: int
    unit: str
    count: int
    take: Line
    give: Line | None


def broken(left: Left) -> list[str]:
    """Everything that was broken, empty when every promise was kept."""
    holds = _holds(left.lines)
    pools = {row.name: row for row in left.rows if isinstance(row, Pool)}
    checks = (one_holder(holds), within_limit(holds, pools), amounts(left.lines), order(left), nothing_left(left))
    return [says for check in checks for says in check]


def _moves(lines: Sequence[Line], *what: str) -> Iterator[tuple[Line, Line]]:
    return ((line, move) for line in lines for move in line["moves"] if move["what"] in what)


def _holds(lines: Sequence[Line]) -> dict[tuple[str, str], list[Hold]]:
    """Every slot's holders in order of their fence."""
    gives: dict[tuple[str, ...], Line] = {}
    for line, move in _moves(lines, "give"):
        gives.setdefault((*move["slot"], move["fence"], move["unit"]), line)
    found: dict[tuple[str, str], list[Hold]] = defaultdict(list)
    for line, move in _moves(lines, "take"):
        given = gives.get((*move["slot"], move["fence"], move["unit"]))
        found[tuple(move["slot"])].append(Hold(move["fence"], move["unit"], move["count"], line, given))
    return {slot: sorted(holds, key=lambda hold: hold.fence) for slot, holds in found.items()}


def one_holder(holds: Mapping[tuple[str, str], Sequence[Hold]]) -> Iterator[str]:
    """SLOT-1 and SLOT-3: each fence of a slot has one holder, and none has it before the one before gave it back."""
    for (pool, name), each in holds.items():
        for before, after in pairwise(each):
            if after.fence <= before.fence:
                yield f"[SLOT-3] fence {after.fence} of {pool}/{name} has two holders: {before.unit}, {after.unit}"
            elif before.give is None or before.give["began"] > after.take["ended"]:
                yield f"[SLOT-1] {pool}/{name} has two holders at once: {before.unit} and {after.unit}"


def within_limit(holds: Mapping[tuple[str, str], Sequence[Hold]], pools: Mapping[str, Pool]) -> Iterator[str]:
    """SLOT-1: what is certainly held of a pool, from a take's end to the give's beginning, is within its limit."""
    changes: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for (pool, _), each in holds.items():
        for hold in each:
            until = hold.give["began"] if hold.give else float("inf")
            if until > hold.take["ended"]:
                changes[pool] += [(hold.take["ended"], hold.count), (until, -hold.count)]
    for pool, steps in changes.items():
        held = most = 0
        for _, change in sorted(steps):
            held += change
            most = max(most, held)
        if most > pools[pool].limit:
            yield f"[SLOT-1] {most} of {pool} were held at once; its limit is {pools[pool].limit}"


def amounts(lines: Sequence[Line]) -> Iterator[str]:
    """SLOT-1: the versions of an amount's row are one chain, and each use follows from the one before it."""
    chains: dict[str, dict[int, Line]] = defaultdict(dict)
    for line, move in _moves(lines, "amount"):
        if chains[move["pool"]].setdefault(move["from"], move) is not move:
            yield f"[SLOT-1] version {move['from']} of {move['pool']} was replaced twice"
        if move["used"] > move["limit"]:
            yield f"[SLOT-1] {move['used']} of {move['pool']} are used; its limit is {move['limit']}"
        own = [each for each in line["moves"] if each.get("slot", [""])[0] == move["pool"]]
        change = sum(each["count"] * {"take": 1, "give": -1}[each["what"]] for each in own)
        if move["used"] - move["was"] != change:
            yield f"[SLOT-1] {move['pool']} went from {move['was']} to {move['used']}, and its holders by {change}"
    for pool, chain in chains.items():
        for first, second in pairwise(chain[version] for version in sorted(chain)):
            if second["was"] != first["used"]:
                yield f"[SLOT-1] {first['used']} of {pool} were used, and then {second['was']}"


@dataclass
class Waiting:
    """One claim in one queue. `granted` is the record of its grant."""

    key: list[str]
    counts: dict[str, int]
    came: float
    since: float
    granted: Line | None = None
    looked: float = 0.0
    passed: int = 0

    @property
    def order(self) -> list[str]:
        """Its place in the queue: its key without the line, by which the rows of a queue are sorted."""
        return self.key[1].split("#")[2:]

    def asks_no_more_than(self, other: Waiting) -> bool:
        """Whether there is room for it wherever there is room for the other."""
        return self.counts.keys() == other.counts.keys() and all(
            self.counts[pool] <= count for pool, count in other.counts.items()
        )


@dataclass(frozen=True)
class Had:
    """What there was of each pool, and who had how much of it when."""

    limits: Mapping[str, int]
    holds: Mapping[str, Sequence[Hold]]

    @classmethod
    def of(cls, left: Left) -> Had:
        """What was had in a run."""
        found: dict[str, list[Hold]] = defaultdict(list)
        for (pool, _), each in _holds(left.lines).items():
            found[pool] += each
        return cls({row.name: row.limit for row in left.rows if isinstance(row, Pool)}, found)

    def left(self, pool: str, later: Waiting) -> int:
        """The most that can have been left of a pool after a grant: what was certainly held all the while was not."""
        ended = later.granted["ended"]  # type: ignore[index]
        held = (
            hold.count
            for hold in self.holds.get(pool, ())
            if hold.take["ended"] < later.looked and (hold.give is None or hold.give["began"] > ended)
        )
        return self.limits[pool] - sum(held) - later.counts[pool]


def order(left: Left) -> Iterator[str]:
    """QUEUE-1: every claim is granted. QUEUE-2: none is passed by a later one that asks for as much or more, and none
    is taken from more than OVERTAKEN times by any. A claim is passed by a grant that was decided after it stood in the
    queue, and that had ended before its own began; deciding begins with the first of the queues that are read for it.
    It is taken from when there is certainly no room left for it, and for those before it.
    """
    had = Had.of(left)
    for pool, queue in _queues(left.lines).items():
        yield from (f"[QUEUE-1] {claim.key} was never granted" for claim in queue if claim.granted is None)
        yield from _passed(pool, queue, had)


def _passed(pool: str, queue: Sequence[Waiting], had: Had) -> Iterator[str]:
    granted = sorted((claim for claim in queue if claim.granted), key=lambda claim: claim.looked)
    by_since = sorted(granted, key=lambda claim: claim.since)
    there: list[Waiting] = []
    for later in granted:
        while by_since and by_since[0].since < later.looked:
            there.append(by_since.pop(0))
        there = [claim for claim in there if claim.granted and claim.granted["ended"] > later.looked]
        ahead = [claim for claim in there if _is_passed_by(claim, later)]
        for claim in ahead:
            if claim.asks_no_more_than(later):
                yield f"[QUEUE-2] {later.key} was granted {pool} before {claim.key}, which asked for no more"
        for claim in _taken_from(pool, ahead, later, granted, had) if ahead else ():
            claim.passed += 1
            if claim.passed > OVERTAKEN:
                yield f"[QUEUE-2] {claim.key} was taken from {claim.passed} times in {pool}"


def _is_passed_by(claim: Waiting, later: Waiting) -> bool:
    return claim.order < later.order and claim.granted["began"] > later.granted["ended"]  # type: ignore[index]


def _taken_from(
    pool: str, ahead: Sequence[Waiting], later: Waiting, granted: Sequence[Waiting], had: Had
) -> Iterator[Waiting]:
    """Those ahead for whom there was certainly no room left, and whose turn it certainly was: there were not even
    perhaps more before them than could have been granted if nobody had anything.
    """
    left, ended = had.left(pool, later), later.granted["ended"]  # type: ignore[index]
    perhaps = [one for one in granted if one.came < ended and one.granted["ended"] > later.looked]  # type: ignore[index]
    wanted = 0
    for claim in sorted(ahead, key=lambda claim: claim.order):
        before = [one for one in perhaps if one.order <= claim.order]
        asked = {name: sum(one.counts.get(name, 0) for one in before) for name in claim.counts}
        if all(count <= had.limits[name] for name, count in asked.items()):
            wanted += claim.counts[pool]
            if wanted > left:
                yield claim


def _queues(lines: Sequence[Line]) -> dict[str, list[Waiting]]:
    """Every claim on every pool, with its grant."""
    counts: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    found: dict[tuple[str, ...], tuple[str, Waiting]] = {}
    for line, move in _moves(lines, "claim"):
        whose = (move["whose"][0], move["whose"][1])
        counts[whose][move["pool"]] = move["count"]
        found[tuple(move["claim"])] = (
            move["pool"],
            Waiting(move["claim"], counts[whose], line["began"], line["ended"]),
        )
    for line, move in _moves(lines, "unclaim"):
        if any(each["what"] == "granted" for each in line["moves"]):
            claim = found[tuple(move["claim"])][1]
            claim.granted, claim.looked = (
                line,
                min(each["looked"] for each in line["moves"] if each["what"] == "unclaim"),
            )
    queues: dict[str, list[Waiting]] = defaultdict(list)
    for pool, claim in found.values():
        queues[pool].append(claim)
    return queues


def nothing_left(left: Left) -> Iterator[str]:
    """JOB-1, UNIT-1: every job is settled, everything is put back, and nobody waits or holds."""
    rows = {row.key: row for row in left.rows}
    for row in left.rows:
        if says := next(_left_of(row, rows), None):
            yield says


def _left_of(row: Any, rows: Mapping[Key, Row]) -> Iterator[str]:
    if isinstance(row, Claim):
        yield f"[QUEUE-1] a claim of {row.job} on {row.pool} is left"
    if isinstance(row, Slot) and row.state is not SlotState.FREE:
        yield f"[UNIT-1] slot {row.name} of {row.pool} is {row.state} for ever"
    if isinstance(row, Pool) and row.used:
        yield f"[SLOT-1] {row.used} of {row.name} are used for ever"
    if isinstance(row, Lease) and lease_now(rows, row).state is not LeaseState.RELEASED:
        yield f"[JOB-1] a lease of {row.job} on {row.pool} is never released"
    if isinstance(row, Unit) and row.state is not UnitState.GONE:
        yield f"[UNIT-1] unit {row.id} is {row.state} for ever"
    if isinstance(row, Job) and not row.is_settled:
        yield f"[JOB-1] job {row.id} never settles"


def claims(lines: Iterable[Line]) -> int:
    """How many claims were granted, each over as many pools as it is.

    A commit grants many that wait, or one at once.
    """
    granting = [line["moves"] for line in lines if any(move["what"] == "granted" for move in line["moves"])]
    waited = [{tuple(move["whose"]) for move in moves if move["what"] == "unclaim"} for moves in granting]
    return sum(max(1, len(whose)) for whose in waited)


def least_share(lines: Sequence[Line], processes: int) -> float:
    """What the least busy process committed, as a part of an even share. Near 0, the others have not raced with it."""
    made = Counter(line["process"] for line in lines)
    return min(made[str(process)] for process in range(processes)) * processes / max(1, len(lines))


def overtaken(left: Left) -> int:
    """The most that any claim was taken from in one queue."""
    queues, had = _queues(left.lines), Had.of(left)
    for pool, queue in queues.items():
        list(_passed(pool, queue, had))
    return max((claim.passed for queue in queues.values() for claim in queue), default=0)
