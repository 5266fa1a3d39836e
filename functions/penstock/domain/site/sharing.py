"""How several jobs share each host of a target: how a site's file says it, and how much of a host a job takes.

    share = true
    share = { parts = 8, serves = "site" }

Each host is divided into equal parts, if nothing else is said one for each of its cpus. A job takes as many as the
largest share that it needs of anything. (Dominant shares: A. Ghodsi et al., "Dominant Resource Fairness", 2011.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.domain.jobfile.machine import Machine, Size
from penstock.domain.pools.choices import ANY, Placement
from penstock.domain.pools.pools import Need, Serves, Sharing
from penstock.domain.site.site import Target
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import Place, clip, flag, number, record, wanted

EXAMPLE = "{ parts = 8 }"

LEAST_PARTS = 2

DIVIDED = ("cpus", "memory", "scratch", "gpu")
"""What of a machine its jobs divide among them."""


@dataclass(frozen=True)
class Portion:
    """What a job gets of a host: a number of cpus, and bytes of memory."""

    cpus: float
    memory: Size


def check_serves(value: object, place: Place) -> Serves:
    """Whose jobs something serves: those of one owner, or anybody's."""
    known = [str(each) for each in Serves]
    if value in known:
        return Serves(str(value))
    hint = " or ".join(f'"{each}"' for each in known)
    if isinstance(value, str):
        place.fault(f"{place.label} cannot be {clip(value)!r}", f"it is {hint}")
    else:
        wanted(hint, value, place)
    return Serves.OWNER


_share_keys = record({}, {"parts": number(LEAST_PARTS, limits.PARTS), "serves": check_serves}, EXAMPLE)


def check_share(value: object, place: Place) -> Mapping[str, Any] | None:
    """What the key says, without what follows from the machine; None for false."""
    if isinstance(value, Mapping):
        found: Mapping[str, Any] = _share_keys(value, place)
        return found
    return {} if flag(value, place) else None


def share(said: Mapping[str, Any], machine: Machine | None, hosts: int | None, place: Place) -> Sharing:
    """How jobs share the hosts of a target. `hosts`: how many it has, None if it names none."""
    if hosts is None:
        place.fault("only hosts are shared, and this target names none", 'give it `names`, like ["bench-7"]')
    if machine is None or machine.cpus is None or machine.memory is None:
        hint = 'like machine = { cpus = 8, memory = "32GiB" }'
        place.fault("it has to be known of a host that jobs share how many cpus and how much memory it has", hint)
    parts = said.get("parts") or min((machine and machine.cpus) or LEAST_PARTS, limits.PARTS)
    if parts < LEAST_PARTS:
        place.fault(
            "a host with one cpu has one part, so there is nothing to share", "say how many: share = { parts = 4 }"
        )
    if (hosts or 0) * parts > limits.THINGS_SLOTS:
        text = f"it has {hosts} hosts with {parts} parts each; there may be {limits.THINGS_SLOTS} parts in all"
        place.fault(text, "divide the hosts into fewer parts, or among several targets")
    return Sharing(parts, said.get("serves", Serves.OWNER))


def parts_for(needs: Machine, machine: Machine, parts: int) -> int:
    """How many parts of a machine a job takes: as many as the largest share that it needs of what is divided.

    It fits the machine: what it needs more of is refused before.
    """
    shares = ((getattr(needs, key), getattr(machine, key)) for key in DIVIDED)
    return max((-(-asked * parts // has) for asked, has in shares if asked and has), default=1) or 1


def of_shared(need: Need, target: Target, needs: Machine) -> Need:
    """The need of a worker on a host that jobs share: so many parts of one."""
    assert target.share, "jobs share its hosts"
    parts = target.share.parts
    taken = parts_for(needs, target.machine or Machine(), parts)
    choice = replace(need.choice or ANY, together=True, placement=Placement.PACKED)
    return replace(need, choice=choice, slots=taken, beside=parts - taken if target.share.serves is Serves.OWNER else 0)


def portion(target: Target, taken: int) -> Portion:
    """What so many parts of a target's hosts are, which jobs share: so it is known what they have."""
    assert target.share, "jobs share its hosts"
    assert target.machine, "it is known what they have"
    part = taken / target.share.parts
    return Portion((target.machine.cpus or 0) * part, Size((target.machine.memory or 0) * part))
