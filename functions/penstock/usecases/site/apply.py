"""Applying a site: its text is checked as a whole, then pools and canaries follow. Also resizes and pauses pools."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from penstock import listings
from penstock.domain.pools.pools import Pool, pool_key, thing_of
from penstock.domain.pools.stops import ByHand
from penstock.domain.site import keys, parse
from penstock.domain.site.differences import Difference, compare
from penstock.domain.site.site import SITE_KEY, Shape, Site, SiteText
from penstock.domain.units import maintenance
from penstock.domain.units.units import STEP_WITHIN
from penstock.kernel import limits
from penstock.kernel.errors import Fault, Refused, not_found
from penstock.kernel.rows import Change, Create, Replace
from penstock.system import System, current_site, parse_site, transact
from penstock.toml import document
from penstock.usecases.probes import canaries
from penstock.usecases.site import stops
from penstock.usecases.users import audit

NAME_CHARS = 128
"""No pool's name has more characters."""

ONLY_TEXT = "nothing but comments, spelling or order"
"""What is audited where the text changed, and no value."""

UNSET = "none"
"""The tag of a site that was never applied."""


def check(on: System, toml: str, path: str) -> Site:
    """The site that a text describes. Raises Refused 422 with everything that is wrong."""
    found = parse.parse(toml, path)
    faults = (
        list(found) if isinstance(found, tuple) else [*_driver_faults(on, found, path), *_host_faults(on, found, path)]
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
        row = SiteText(toml=toml, applied_at=on.world.now(), applied_by=by)
        written = [Replace(was, row) if was else Create(row)]
        return audit.record(on, written, by, "apply config", path, "; ".join(changed) or ONLY_TEXT), changed

    changed = transact(on, decide)
    changed += _fit_pools(on, site)
    for row in stops.list_stops(on):
        stops.spread(on, row.scope)  # a target may have another factory now
    return changed + canaries.schedule_new(on, site)


def _fit_pools(on: System, site: Site) -> list[str]:
    """Write every pool's row as the site says; pools that the site no longer has lose their slots as they fall free."""
    wanted = site.pools()
    existing = {pool.name: pool for pool in every_pool(on)}
    gone = {name: replace(shape_of(pool), limit=0) for name, pool in existing.items() if name not in wanted}
    changed = []
    for name, shape in {**wanted, **gone}.items():
        was = on.store.get(pool_key(name), Pool)
        if was and shape_of(was) == shape and was.spec == shape.spec and was.due is None and was.setback is None:
            continue
        set_pool(on, name, shape)
        if was is None or shape_of(was) != shape:
            changed.append(f"pool {name}: {describe(shape_of(was)) if was else 'new'} -> {describe(shape)}")
        if was and was.warm and is_made_otherwise(was, shape):
            changed.append(f"pool {name}: what it keeps is replaced, since it is made otherwise now")
    return changed


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


def set_pool(on: System, name: str, shape: Shape, by: str = "", reason: str = "") -> None:
    """Write a pool's row, and have its slots follow; the row is due until they do. A setback is forgotten.

    `by` is who set it by hand, and why; empty for the site's configuration.
    """
    now = on.world.now()
    due = now + STEP_WITHIN
    given: dict[str, Any] = {"limit": shape.limit, "names": shape.names, "is_amount": shape.is_amount}
    given |= {"warm": shape.warm, "hosts": shape.hosts, "labels": shape.labels, "share": shape.share}
    given |= {"resized": ByHand(by, now, reason) if by else None, "spec": shape.spec, "due": due, "setback": None}

    def decide() -> tuple[Sequence[Change], None]:
        was = on.store.get(pool_key(name), Pool)
        if was is None:
            return [Create(Pool(name=name, **given, stops=stops.of_new_pool(on, name, current_site(on))))], None
        over = not shape.is_amount and (was.over or shape.limit < was.limit)
        renewed = now if is_made_otherwise(was, shape) else was.renewed
        changes = [Replace(was, replace(was, over=over, renewed=renewed, **given))]
        detail = f"{was.limit} -> {shape.limit}" + (f": {reason}" if reason else "")
        return audit.record(on, changes, by, "resize", f"pool {name}", detail), None

    transact(on, decide)
    on.queues.schedule({"do": "resize", "pool": name})


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
