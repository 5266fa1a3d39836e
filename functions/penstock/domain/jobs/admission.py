"""The checks before a job is accepted, in three steps.

`check_names`: does the site have the target and the resource types? `check_satisfiable`: may this user have them, and
can the site ever provide them? `describe_wait`: would the job wait now? Only the first two refuse a job; what is not
free now may become free. The checks hold no lock, so a wrong answer costs only a retry: the commit that grants decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from penstock.domain.jobfile import JobFile, ResourceAsk
from penstock.domain.jobs.jobs import UNTRUSTED, Provenance
from penstock.domain.pools.choices import ANY, Choice
from penstock.domain.pools.choosing import Offer, choose
from penstock.domain.pools.forecast import Action, Forecast
from penstock.domain.pools.grants import rows_of_grant
from penstock.domain.pools.matching import Wish
from penstock.domain.pools.pools import WORKER, Need, Pool, Slot, SlotState, demand
from penstock.domain.site.site import Environment, ResourceType, Site, Target
from penstock.domain.users.users import PRIORITY, User, is_repository
from penstock.kernel import limits
from penstock.kernel.errors import Fault, Refused

OptionCheck = Callable[[str, str, Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], Sequence[str]]
"""What a driver objects to in the options of a resource or a worker: ("well" or "factory", driver, options, the maker's
settings, the type's).
"""


MAX_LABELS = 10
"""How many labels a refusal lists."""

MAX_VALUES = 10
"""How many values of each, and names of things."""


def check_names(site: Site, file: JobFile) -> Target | Refused:
    """The target or family that the file's name leads to; or the refusal, if the site lacks it or a resource type."""
    target = site.resolve(file.target)
    if target is None:
        return _unknown("target", file.target, [name for name in site.targets if site.resolve(name)])
    unknown = check_types(site, file.resources)
    if unknown:
        return unknown
    if file.environment and file.environment not in site.environments:
        return _unknown("environment", file.environment, list(site.environments))
    return target


def check_types(site: Site, asked: Sequence[ResourceAsk]) -> Refused | None:
    """The refusal, if the site lacks one of the resource types."""
    missing = next((name for name in sorted(ask.type for ask in asked) if name not in site.resources), None)
    return _unknown("resource type", missing, list(site.resources)) if missing else None


def check_environment(site: Site, user: User, file: JobFile, source: Provenance) -> Environment | Refused | None:
    """The environment that a job asks for, if it may; None if it asks for none. [SEC-2]

    Call it when `check_names` refused nothing. A job of a repository may ask from the refs that the environment names,
    and only if its source is vouched for.
    """
    found = site.environments.get(file.environment)
    if found is None:
        return None
    if not set(user.names).intersection(found.owners):
        return _no_environment(found, f"it is not for jobs of {user.name}")
    if source.outsider:
        return _no_environment(found, UNTRUSTED)
    if is_repository(user.name) and not found.takes(source.ref):
        refs = ", ".join(found.refs)
        return _no_environment(found, f"it is for jobs of {refs}, and this one is of {source.ref or 'no ref'}")
    return found


def _no_environment(found: Environment, why: str) -> Refused:
    return Refused(403, "environment-not-allowed", f"the job may not ask for the environment {found.name!r}: {why}")


def _unknown(what: str, name: str, known: Sequence[str]) -> Refused:
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(sorted(known)) or 'none'}"
    code = "unknown-" + what.replace(" ", "-")
    return Refused(422, code, f"there is no {what} {name!r}; {hint}", [Fault(f"no {what} {name!r}", hint=hint)])


def check_satisfiable(
    site: Site,
    user: User,
    file: JobFile,
    needs: Sequence[Need],
    objections: OptionCheck,
    environment: Environment | None = None,
) -> Refused | None:
    """Refuse what this user may not have, or what the site cannot provide even when nobody else has anything.

    Call it when `check_names` refused nothing; `needs` are what the file asks for, and `environment` is that of which
    the job gets privileges by a review.
    """
    return (
        _privileged(site, user, file, needs, environment.privileges if environment else ())
        or _enough(site, needs)
        or _grantable(site, needs)
        or _choosable(site, needs)
        or _options(site, file, needs, objections)
    )


def privileges(site: Site, file: JobFile, needs: Sequence[Need]) -> dict[str, str]:
    """The privileges that a job needs, and what for. A lease without a job has no worker, and so no target."""
    runs_on = [site.targets[need.type] for need in needs if need.order == WORKER]
    targets = [entry for target in runs_on for entry in site.asked_for(file.target, target)]
    wanted = [(f"target {entry.name}", entry.privilege) for entry in targets]
    types = sorted({ask.type for ask in file.resources})
    wanted += [(f"resource type {name}", site.resources[name].privilege) for name in types]
    wanted.append((f"priority {file.priority}", PRIORITY if file.priority > 0 else None))
    found: dict[str, str] = {}
    for what, privilege in wanted:
        if privilege is not None:
            found.setdefault(privilege, what)
    return found


def _privileged(site: Site, user: User, file: JobFile, needs: Sequence[Need], given: Collection[str]) -> Refused | None:
    for privilege, what in privileges(site, file, needs).items():
        if not user.may(privilege) and privilege not in given:
            return Refused(403, "privilege-missing", f"{what} needs the privilege {privilege!r}")
    return None


def _enough(site: Site, needs: Sequence[Need]) -> Refused | None:
    """Refuse more of a type than the site has."""
    shapes = site.pools()
    totals: Counter[str] = Counter()
    for need in needs:
        totals[need.pool] += need.slots
    for pool, wanted in totals.items():
        need = next(need for need in needs if need.pool == pool)
        there = shapes[pool].limit
        if need.order == WORKER and not there:
            return _never(f"target {need.type} has a limit of 0: no job can run there")
        if wanted > there:
            return _never(f"the job wants {wanted} of {need.type} and there are {there}: it could never run")
    return None


def _grantable(site: Site, needs: Sequence[Need]) -> Refused | None:
    """Refuse a step that could never be granted: with all that its units use, in one commit."""
    shapes = site.pools()
    for step in sorted({need.step for need in needs}):
        mine = [need for need in needs if need.step == step]
        wanted = demand(mine)
        for pool, count in wanted.items():
            if count > shapes[pool].limit:
                there = shapes[pool].limit
                return _never(f"the job wants {count} of {pool} at once and there are {there}: it could never run")
        too_many = _too_many(mine, [pool for pool, shape in shapes.items() if shape.is_amount])
        if too_many:
            return too_many
    return None


def _choosable(site: Site, needs: Sequence[Need]) -> Refused | None:
    """Refuse a choice among named things that nothing fits, or too little for all that the job wants."""
    for pool in dict.fromkeys(need.pool for need in needs if need.choice):
        mine = [need for need in needs if need.pool == pool]
        wished = [Wish(at, need.choice or ANY, need.slots) for at, need in enumerate(mine)]
        is_worker = mine[0].order == WORKER
        kind = site.targets[mine[0].type] if is_worker else site.resources[mine[0].type]
        offer = _offer(kind)
        alone = next((wish for wish in wished if choose(offer, [wish]) is None), None)
        if alone:
            return _nothing_fits(kind, alone.choice)
        if choose(offer, wished) is None:
            text = f"the job wants {len(wished)} of {kind.name}, and not enough of them fit all that it chooses"
            return _no_room(text, "resources", "ask for fewer, or choose among more")
    return None


def _offer(kind: ResourceType | Target) -> Offer:
    """All slots of a type or a target, as if nobody had any."""
    pool = Pool(name=kind.pool, names=kind.slots, labels=kind.labels, limit=len(kind.slots or ()))
    return Offer(pool, [Slot(pool=kind.pool, name=name, state=SlotState.FREE) for name in kind.slots or ()], had=())


def _nothing_fits(kind: ResourceType | Target, choice: Choice) -> Refused:
    where, what, hint = (
        ("host", "hosts", "leave `host` out")
        if isinstance(kind, Target)
        else ("resources", "things", "ask for any of them")
    )
    if kind.names is None:
        return _no_room(f"{kind.name} has no named {what} among which a job could choose", where, hint)
    known: dict[str, dict[str, None]] = {}
    for labels in kind.labels.values():
        for key, value in labels.items():
            known.setdefault(key, {})[value] = None
    said = [f"{key}: {', '.join(list(values)[:MAX_VALUES])}" for key, values in list(known.items())[:MAX_LABELS]]
    there = f"there are {', '.join(kind.names[:MAX_VALUES])}{'; their labels: ' + '; '.join(said) if said else ''}"
    return _no_room(f"no {'host of ' if where == 'host' else ''}{kind.name} fits {choice}", where, there)


def _too_many(needs: Sequence[Need], amounts: Collection[str]) -> Refused | None:
    """Refuse what one commit has no room for: all that one step acquires. To give it back takes less."""
    room = limits.TRANSACTION_ITEMS
    types = " and ".join(sorted({need.type for need in needs}))
    rows = rows_of_grant(needs, amounts)
    if rows > room:
        most = max((n for n in range(1, len(needs)) if rows_of_grant(needs[:n], amounts) <= room), default=0)
        why = f"the job wants {len(needs)} of {types} at once, with all that they use: a grant of up to {rows} rows"
        hint = f"ask for at most {most} of them, or let several jobs share them" if most else "ask for less"
        return _no_room(f"{why}, and there is room for {room}", "resources", hint)
    return None


def _no_room(why: str, where: str, hint: str) -> Refused:
    return Refused(422, "unsatisfiable", f"{why}: {hint}", [Fault(why, where=where, hint=hint)])


def _never(why: str) -> Refused:
    return Refused(422, "unsatisfiable", why)


def _options(site: Site, file: JobFile, needs: Sequence[Need], objections: OptionCheck) -> Refused | None:
    """Refuse options that a factory or well rejects by its settings. Each fault has its line in the file."""
    found = (_objected(site, file, need, objections) for need in needs)
    return next((each for each in found if each), None)


def _objected(site: Site, file: JobFile, need: Need, objections: OptionCheck) -> Refused | None:
    if need.order == WORKER:
        return _objected_worker(site, file, need, objections)
    well, kind = site.wells[need.maker], site.resources[need.type]
    wrong = objections("well", well.driver, need.options, well.settings, kind.settings)
    where, spots = f"resources.{need.name}.options", {ask.name: ask.spot for ask in file.resources}
    faults = _faults(file, wrong, where, spots.get(need.name))
    text = f"well {need.maker} does not take these options of {need.name}"
    return Refused(422, "bad-options", text, faults) if wrong else None


def _objected_worker(site: Site, file: JobFile, need: Need, objections: OptionCheck) -> Refused | None:
    """Refuse what a job says of how its worker is made, key by key."""
    faults: list[Fault] = []
    for key, value in need.options.items():
        factory = site.factories[need.maker]
        wrong = objections("factory", factory.driver, {key: value}, factory.settings, {})
        faults += _faults(file, wrong, key, file.spots.get(key))
    text = f"target {need.type} does not let a job choose this"
    return Refused(422, "bad-options", text, faults) if faults else None


def _faults(file: JobFile, wrong: Sequence[str], where: str, spot: tuple[int, int] | None) -> list[Fault]:
    line, column = spot or (None, None)
    path = file.path if line else None
    return [Fault(text, where=where, file=path, line=line, column=column) for text in wrong]


def describe_wait(forecast: Forecast) -> str | None:
    """What a claim would wait for, as a sentence; None if it would be granted at once."""
    if not forecast.would_wait:
        return None
    place = f"the job would wait at position {forecast.position} in its queue"
    ways = {act.way for act in forecast.unblocks if act.pool == forecast.pool}
    if Action.RESUME in ways:
        return f"{forecast.pool} is paused by an operator: {place}"
    if Action.RAISE in ways:
        return f"{forecast.pool} has too low a limit at present: {place}"
    return f"nothing of {forecast.pool} is free for it: {place}"
