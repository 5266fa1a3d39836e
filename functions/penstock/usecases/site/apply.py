"""Applying a site: its text is checked as a whole and committed; then its rollout brings pools, stops and canaries to
it. Also resizes and pauses pools.

Every write of a pool names the site's row as it was read: if another site was applied meanwhile, that one's rollout
brings the pools. A rollout is due until all is done, so the sweep does what is left when the time of the request is
over, or its function died.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

from penstock import listings
from penstock.domain import metrics
from penstock.domain.pools.pools import Pool, collection, pool_key, thing_of
from penstock.domain.pools.stops import AGAIN, ByHand
from penstock.domain.site import keys, parse
from penstock.domain.site.differences import Difference, compare
from penstock.domain.site.site import ROLLOUT_KEY, SITE_KEY, Rollout, Shape, Site, SiteText
from penstock.domain.units import maintenance
from penstock.domain.units.units import STEP_WITHIN
from penstock.kernel import limits
from penstock.kernel.errors import Fault, Refused, not_found
from penstock.kernel.rows import Change, Check, Create, Replace
from penstock.system import System, current_site, parse_site, transact
from penstock.toml import document
from penstock.usecases.isolation import Isolation
from penstock.usecases.probes import canaries
from penstock.usecases.site import stops
from penstock.usecases.users import audit

NAME_CHARS = 128
"""No pool's name has more characters."""

ONLY_TEXT = "nothing but comments, spelling or order"
"""What is audited where the text changed, and no value."""

UNSET = "none"
"""The tag of a site that was never applied."""

WITHIN = timedelta(seconds=15)
"""How long one call rolls a site out before it leaves the rest to another."""

GOES_ON = "pools that are not as the site says yet follow within minutes"
"""What is told with the changes if the rollout goes on after the answer."""


def check(on: System, toml: str, path: str) -> Site:
    """The site that a text describes. Raises Refused 422 with everything that is wrong."""
    found = parse.parse(toml, path)
    faults = (
        list(found)
        if isinstance(found, tuple)
        else [*_driver_faults(on, found, path), *_host_faults(on, found, path), *_size_faults(found, path)]
    )
    if faults or isinstance(found, tuple):
        raise Refused(422, "bad-site", f"{path} cannot be applied", faults)
    return found


def _driver_faults(on: System, site: Site, path: str) -> Iterator[Fault]:
    """What the drivers find wrong with their settings."""
    for kind, table, makers in (("factory", "factories", site.factories), ("well", "wells", site.wells)):
        for maker in makers.values():
            for complaint in on.drivers.complaints(kind, maker.driver, maker.settings):
                yield Fault(complaint, where=f"{table}.{maker.name}", file=path)
    for table, kind, entries in (("targets", "factory", site.targets), ("resources", "well", site.resources)):
        for entry in entries.values():
            if entry.warm and not on.drivers.reusable(kind, site.maker(entry).driver):
                text = f"the driver of its {kind} keeps nothing for the next lease: every lease gets a new one"
                yield Fault(text, where=f"{table}.{entry.name}.warm", file=path, hint="take `warm` out")


def _host_faults(on: System, site: Site, path: str) -> Iterator[Fault]:
    """Machines that exist already need names, and no others may have any."""
    for target in site.targets.values():
        if not target.has_workers:
            continue
        here, driver = f"targets.{target.name}", site.maker(target).driver
        if target.names is None and on.drivers.hosts(driver):
            text = "the machines of its factory exist already, each with a name"
            yield Fault(text, where=here, file=path, hint='name them, like names = ["bench-7"], instead of a `limit`')
        elif target.names is not None and not on.drivers.hosts(driver):
            text = "its factory makes its machines, so they have no names yet"
            yield Fault(text, where=f"{here}.names", file=path, hint="give it a `limit` instead")
        elif target.share and not site.maker(target).settings.get("image"):
            text = "jobs that share a host run in containers, and its factory says no image for them"
            hint = f'like [factories.{target.factory}] image = "registry.example.com/ci/python@sha256:…"'
            yield Fault(text, where=f"{here}.share", file=path, hint=hint)


def _size_faults(site: Site, path: str) -> Iterator[Fault]:
    """The pools that would have more slots than a pool may have, or whose row has no room for all names of these. The
    site in force may have such pools, from a release that did not refuse them.
    """
    for name, shape in site.pools().items():
        kind, _, own = name.partition("/")
        size = len(json.dumps([shape.names, shape.labels], ensure_ascii=False).encode())
        if len(shape.names or ()) > keys.MAX_SLOTS:
            text = f"its names make {len(shape.names or ())} slots; a pool may have {keys.MAX_SLOTS}"
        elif size > limits.ROW_BYTES:
            text = f"the names and labels of its slots take {size} bytes as JSON; there is room for {limits.ROW_BYTES}"
        else:
            continue
        yield Fault(text, where=f"{kind}s.{own}", file=path, hint="divide them among several")


def apply(on: System, by: str, toml: str, path: str, base: str = "") -> list[str]:
    """Apply a site and return what changed. Applying the same again changes nothing.

    With `base` it replaces the site with that tag only: what an operator was shown, and agreed to. Raises Refused 412.
    """
    site = check(on, toml, path)
    size = len(json.dumps(toml, ensure_ascii=False).encode())
    if size > limits.ROW_BYTES:
        raise Refused(413, "site-too-big", f"{path} takes {size} bytes as JSON; there is room for {limits.ROW_BYTES}")

    def decide() -> tuple[Sequence[Change], list[str]]:
        was = on.store.get(SITE_KEY, SiteText)
        if was and was.toml == toml:
            return [], []
        _check_base(was, base)
        changed = [str(each) for each in differences(was, toml, site)]
        now = on.world.now()
        row = SiteText(toml=toml, applied_at=now, applied_by=by)
        written = [Replace(was, row) if was else Create(row), _begin_rollout(on, now)]
        return audit.record(on, written, by, "apply config", path, "; ".join(changed) or ONLY_TEXT), changed

    changed = transact(on, decide)
    text = on.store.get(SITE_KEY, SiteText)
    if text is None or text.toml != toml:
        return changed  # another site was applied since
    return changed + _roll_out(on, text, site)


def _begin_rollout(on: System, now: datetime) -> Change:
    """The site's rollout is due: whoever dies after this commit leaves it to the sweep."""
    was, begun = on.store.get(ROLLOUT_KEY, Rollout), Rollout(since=now, due=now + STEP_WITHIN)
    return Replace(was, begun) if was else Create(begun)


def _roll_out(on: System, text: SiteText, site: Site) -> list[str]:
    """Roll a site out in the request that applied it, and tell what changed. What was set by hand is taken back."""
    now, rollout = on.world.now(), on.store.get(ROLLOUT_KEY, Rollout)
    ongoing = OngoingRollout(on, text, site, now, now + WITHIN, is_anew=True)
    if not ongoing.run():
        return [*ongoing.changed, GOES_ON]
    if rollout and not rollout.is_done:
        _done(on, rollout)
    return ongoing.changed


def go_on(on: System) -> bool:
    """Do what is left of a site's rollout, pool by pool; what was set by hand since it was applied stays so.

    Returns False if its time was over. What failed is counted, and stays due.
    """
    rollout = on.store.get(ROLLOUT_KEY, Rollout)  # first: a site that is applied after this replaces it
    text = on.store.get(SITE_KEY, SiteText)
    if rollout is None or rollout.due is None or text is None:
        return True
    ongoing = OngoingRollout(on, text, parse_site(text.toml), rollout.since, on.world.now() + WITHIN)
    if ongoing.run():
        _done(on, rollout)
    on.metrics.add(metrics.FAILED_NUDGES, ongoing.pools.failed)
    return not ongoing.is_over


def _done(on: System, rollout: Rollout) -> None:
    """All follows a site. After a while it is looked at once more. Another site's rollout is not touched."""
    due = None if rollout.is_done else on.world.now() + AGAIN
    on.store.commit([Replace(rollout, replace(rollout, is_done=True, due=due))])


@dataclass
class OngoingRollout:
    """A rollout that one call goes on with: every pool's row as the site says, and all that follows from it.

    What was set by hand after `since` stays. `is_anew`: pools are written besides whose slots do not follow yet, or
    that have a setback. `until` is when the time is over. A pool that cannot be written costs only itself.
    """

    on: System
    text: SiteText
    site: Site
    since: datetime
    until: datetime
    is_anew: bool = False
    pools: Isolation = field(default_factory=Isolation)
    changed: list[str] = field(default_factory=list)
    is_over: bool = False

    def run(self) -> bool:
        """Whether all is done."""
        pools = list(every_pool(self.on))
        hidden = {key.pk.removeprefix(collection("")) for key in listings.unreadable(self.on, "pools", pools)}
        self.changed += [f"pool {name}: its row cannot be read; it follows once it can be" for name in sorted(hidden)]
        for name, (was, shape) in self._all(pools, hidden).items():
            if self.on.world.now() >= self.until:
                self.is_over = True
                return False
            with self.pools.step("bringing a pool to the site", pool=name):
                self._fit(name, was, shape)
        if not stops.follow_site(self.on, self.until, self.pools):
            self.is_over = True
            return False
        self.changed += canaries.schedule_new(self.on, self.site)
        return not (self.pools.failed or hidden)

    def _all(self, pools: Sequence[Pool], hidden: Collection[str]) -> Mapping[str, tuple[Pool | None, Shape]]:
        """Every pool but the hidden ones, as it is and is to be. One that the site has no more loses its slots as these
        fall free.
        """
        wanted = {name: shape for name, shape in self.site.pools().items() if name not in hidden}
        rows = listings.rows_at(self.on, [pool_key(name) for name in wanted])
        found = {name: (cast("Pool | None", rows.get(pool_key(name))), shape) for name, shape in wanted.items()}
        gone = [pool for pool in pools if pool.name not in wanted]
        return found | {pool.name: (pool, replace(shape_of(pool), limit=0)) for pool in gone}

    def _fit(self, name: str, was: Pool | None, shape: Shape) -> None:
        """Write one pool's row if it is not as the site says."""
        if was and not self._is_to_be_written(was, shape):
            return
        if not set_pool(self.on, name, shape, of=self.text):
            return
        if was is None or shape_of(was) != shape:
            self.changed.append(f"pool {name}: {describe(shape_of(was)) if was else 'new'} -> {describe(shape)}")
        if was and was.warm and is_made_otherwise(was, shape):
            self.changed.append(f"pool {name}: what it keeps is replaced, since it is made otherwise now")

    def _is_to_be_written(self, was: Pool, shape: Shape) -> bool:
        if was.resized and was.resized.at > self.since:
            return False
        is_behind = self.is_anew and (was.due is not None or was.setback is not None)
        return is_behind or shape_of(was) != shape or was.spec != shape.spec


def is_made_otherwise(was: Pool, now: Shape) -> bool:
    """Whether the units of a pool are made by other settings from now on. A row of a release before says nothing."""
    return bool(was.spec) and was.spec != now.spec


def every_pool(on: System, after: str = "") -> Iterator[Pool]:
    """All pools behind a name, in order. One that was written just now may be missing."""
    return listings.every(on, "pools", Pool, after)


def shape_of(pool: Pool) -> Shape:
    """What a pool is at present."""
    return Shape(pool.limit, pool.names, pool.is_amount, pool.warm, pool.hosts, pool.labels, pool.share, pool.spec)


def describe(shape: Shape) -> str:
    """A pool in words."""
    if shape.is_amount:
        return f"amount {shape.limit}"
    kept = f", up to {shape.warm.most} kept warm" if shape.warm else ""
    kept += f", {shape.warm.least} made ahead" if shape.warm and shape.warm.least else ""
    if shape.names is None or not shape.limit:
        return f"limit {shape.limit}{kept}"
    return ", ".join(_labelled(name, shape) for name in shape.names) + kept


def _labelled(slot: str, shape: Shape) -> str:
    """A slot with the labels of its thing."""
    labels = shape.labels.get(thing_of(slot), {})
    return f"{slot} ({', '.join(f'{key} {value}' for key, value in labels.items())})" if labels else slot


def differences(was: SiteText | None, toml: str, site: Site) -> list[Difference]:
    """How a site differs from the one that was applied."""
    before = parse_site(was.toml) if was else Site()
    return compare(before, site, _content(was.toml) if was else {}, _content(toml))


def _content(toml: str) -> Mapping[str, Any]:
    """The TOML of a text that was checked before."""
    return cast(document.Document, document.read(toml, "")).content


def tag(was: SiteText | None) -> str:
    """What tells one applied text from every other."""
    return hashlib.sha256(was.toml.encode()).hexdigest()[:32] if was else UNSET


def _check_base(was: SiteText | None, base: str) -> None:
    """Raises Refused 412 if the site is not the one that was looked at. No `base` is any."""
    if base and base != tag(was):
        said = (
            f"{was.applied_by} applied another one on {was.applied_at:%F at %T}Z" if was else "there is none any more"
        )
        raise Refused(412, "site-changed", f"the configuration is not the one that you saw: {said}")


def set_pool(on: System, name: str, shape: Shape, by: str = "", reason: str = "", of: SiteText | None = None) -> bool:
    """Write a pool's row, and have its slots follow; the row is due until they do. A setback is forgotten.

    `by` is who set it by hand, and why; empty for the site's configuration. With `of`, the site that says so, nothing
    is written if another is in force.
    """
    now = on.world.now()
    due = now + STEP_WITHIN
    given: dict[str, Any] = {"limit": shape.limit, "names": shape.names, "is_amount": shape.is_amount}
    given |= {"warm": shape.warm, "hosts": shape.hosts, "labels": shape.labels, "share": shape.share}
    of_site: list[Change] = [Check(of)] if of else []
    given |= {"resized": ByHand(by, now, reason) if by else None, "spec": shape.spec, "due": due, "setback": None}

    def decide() -> tuple[Sequence[Change], bool]:
        was = on.store.get(pool_key(name), Pool)
        if of and on.store.get(SITE_KEY, SiteText) != of:
            return [], False
        if was is None:
            row = Pool(name=name, **given, stops=stops.of_new_pool(on, name, current_site(on)))
            return [Create(row), *of_site], True
        over = not shape.is_amount and (was.over or shape.limit < was.limit)
        renewed = now if is_made_otherwise(was, shape) else was.renewed
        changes = [Replace(was, replace(was, over=over, renewed=renewed, **given)), *of_site]
        detail = f"{was.limit} -> {shape.limit}" + (f": {reason}" if reason else "")
        return audit.record(on, changes, by, "resize", f"pool {name}", detail), True

    if not transact(on, decide):
        return False
    on.queues.schedule({"do": "resize", "pool": name})
    return True


def resize(on: System, name: str, limit: int, by: str = "", reason: str = "") -> Pool:
    """Set the limit of a numbered pool or an amount until the site is applied again. Raises Refused 400, 404 or 409."""
    maintenance.check(reason)
    was = find(on, name)
    if was.names is not None:
        raise Refused(409, "pool-is-named", f"{name} has named slots: change its names in the site's configuration")
    most = keys.MAX_AMOUNT if was.is_amount else keys.MAX_SLOTS
    if not 0 <= limit <= most:
        raise Refused(400, "bad-request", f"a limit is a whole number from 0 to {most}")
    set_pool(on, name, replace(shape_of(was), limit=limit), by, reason)
    return find(on, name)


def pause(on: System, name: str, *, paused: bool, by: str = "", reason: str = "") -> Pool:
    """Stop granting from a pool, or resume. What is held stays held; nothing is reserved elsewhere for its claims.

    Who pauses a paused pool with another reason replaces what is said of the pause. Raises Refused 400 or 404.
    """
    maintenance.check(reason)

    def decide() -> tuple[Sequence[Change], Pool]:
        was = find(on, name)
        pause = ByHand(by, on.world.now(), reason) if by and paused else None
        now = replace(was, paused=paused, pause=pause)
        if was.paused == paused and not _is_said_anew(was.pause, pause):
            return [], was
        changes = [Replace(was, now)]
        return audit.record(on, changes, by, "pause" if paused else "resume", f"pool {name}", reason), now

    pool = transact(on, decide)
    if paused:
        on.queues.schedule({"do": "resize", "pool": name})
    else:
        on.queues.serve([name], name)
    return pool


def _is_said_anew(was: ByHand | None, now: ByHand | None) -> bool:
    """Whether somebody gives a reason that is not the one that stands there already."""
    return now is not None and now.reason not in ("", was.reason if was else "")


def find(on: System, name: str) -> Pool:
    """A pool by name. Raises Refused 404."""
    pool = on.store.get(pool_key(name), Pool) if len(name) <= NAME_CHARS else None
    if pool is None:
        raise not_found("pool", name[:NAME_CHARS])
    return pool
