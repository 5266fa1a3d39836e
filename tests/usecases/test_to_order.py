"""Workers that are made as their job says, where a factory lets jobs name an image. [SEC-2]"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.commands import SubmitJob
from penstock.domain.cooldowns import type_scope
from penstock.domain.jobs.jobs import State
from penstock.domain.pools import grants
from penstock.domain.units.units import UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured, Refused
from penstock.ports import NotYet, Order, Ready
from penstock.testing.site import site_toml
from penstock.testing.twin import START, ScriptedDriver, Twin
from penstock.usecases import cooldowns
from penstock.usecases.jobs import submit as submitting
from penstock.usecases.site import apply
from penstock.usecases.units import drivers
from tests.usecases.steps import job_of, live, submit
from tests.usecases.warm import SITE, Agent, unit_of, worker_at_rest

IMAGE = f"registry.example.com/ci/rust@sha256:{'ab' * 32}"
BOXES = {"driver": "container", "image": IMAGE, "images": ["docker.io/library/*"], "services": 1}


class Recording(ScriptedDriver):
    """A factory that remembers what it was asked for, and cannot make some options."""

    def __init__(self) -> None:
        super().__init__()
        self.orders, self.bad = list[Order](), dict[str, Any]()

    def create(self, order: Order) -> Ready | NotYet:
        self.orders.append(order)
        if self.bad and order.options == self.bad:
            raise Misconfigured("manifest unknown")
        return super().create(order)


@pytest.fixture
def made(twin: Twin) -> Recording:
    apply.apply(twin.on, "root", SITE, "site.toml")
    twin.run()
    twin.drivers.hand = found = Recording()
    return found


def test_a_factory_is_asked_for_the_image_that_a_job_names(twin: Twin, ada: User, made: Recording) -> None:
    for job in (submit(twin, ada, target="linux", image=IMAGE), submit(twin, ada, target="linux")):
        twin.run()
        assert live(twin, job)
    assert [order.options for order in made.orders] == [{"image": IMAGE}, {}]
    assert all(order.is_worker and order.key for order in made.orders)


def test_a_resource_is_told_its_own_options_and_may_be_warm(twin: Twin, ada: User, made: Recording) -> None:
    """Only a worker that is made to order is fresh."""
    twin.drivers.basin = well = Recording()
    asked = {"db": {"type": "db", "options": {"size": "small"}}}
    job = job_of(twin, submit(twin, ada, target="linux", image=IMAGE, resources=asked))
    twin.run()
    told = {unit.lease.order: drivers.options_of(twin.on, unit) for unit in live(twin, job.id)}
    assert told == {0: {"image": IMAGE}, 1: {"size": "small"}}
    assert [(order.options, order.is_worker) for order in well.orders] == [({"size": "small"}, False)]
    assert [grants.claims(job, step, START)[0].fresh for step in (0, 1)] == [True, False]


def test_a_worker_with_an_image_of_its_own_serves_one_job(twin: Twin, ada: User, made: Recording) -> None:
    """It takes no warm worker, which has another image, and leaves none to others."""
    warm = worker_at_rest(twin, ada)
    job = submit(twin, ada, target="linux", image=IMAGE)
    twin.run()
    (own,) = live(twin, job)
    assert own.id != warm.worker
    agent = Agent(twin, own.id)
    agent.hello()
    agent.finish(job)
    assert unit_of(twin, own.id).state is UnitState.GONE
    plain = submit(twin, ada, target="linux")
    twin.run()
    assert [unit.id for unit in live(twin, plain)] == [warm.worker]


def test_a_warm_worker_makes_room_for_one_with_another_image(twin: Twin, ada: User, made: Recording) -> None:
    warm = worker_at_rest(twin, ada)
    first, second = (submit(twin, ada, target="linux", image=IMAGE) for _ in range(2))
    twin.run()
    assert unit_of(twin, warm.worker).state is UnitState.GONE
    assert [len(live(twin, job)) for job in (first, second)] == [1, 1]


def test_an_image_that_cannot_be_had_stops_no_other_job(twin: Twin, ada: User, made: Recording) -> None:
    made.bad = {"image": IMAGE}
    bad = submit(twin, ada, target="linux", image=IMAGE)
    twin.run()
    assert [row.scope for row in cooldowns.cooldowns_of(twin.on, "factory/hand")] == [type_scope("linux", made.bad)]
    good = submit(twin, ada, target="linux")
    twin.run()
    (unit,) = live(twin, good)
    assert unit.creation.made
    assert job_of(twin, bad).state is not State.SETTLED


def test_only_a_worker_that_is_made_to_order_has_its_job_read(
    twin: Twin, ada: User, made: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain job costs no request more."""
    job = submit(twin, ada, target="linux")
    twin.run()
    (unit,) = live(twin, job)
    get, read = twin.store.get, list[str]()
    monkeypatch.setattr(twin.store, "get", lambda key, kind: read.append(key.pk) or get(key, kind))
    assert drivers.options_of(twin.on, unit) == {}
    assert read == []


@pytest.fixture
def boxed(twin: Twin) -> Twin:
    text = site_toml(
        targets={"box": {"factory": "boxes", "limit": 1}, "plain": {"factory": "here", "limit": 1}},
        factories={"boxes": BOXES, "here": "process"},
    )
    apply.apply(twin.on, "root", text, "site.toml")
    return twin


REFUSED = [
    ("box", IMAGE, "the site does not let jobs name the image registry.example.com/ci/rust"),
    ("plain", IMAGE, "what the driver process makes is the same for all jobs"),
]


@pytest.mark.parametrize(("target", "image", "why"), REFUSED)
def test_an_image_that_the_target_does_not_take_is_refused(
    boxed: Twin, ada: User, target: str, image: str, why: str
) -> None:
    script = f'#!/bin/bash\n#: name = "a"\n#: variety = "basic"\n#: target = "{target}"\n#: image = "{image}"\n'
    with pytest.raises(Refused) as found:
        submitting.submit(boxed.on, ada, SubmitJob(script), None)
    (fault,) = found.value.faults
    assert (found.value.status, found.value.code) == (422, "bad-options")
    assert found.value.detail == f"target {target} does not let a job choose this"
    assert (fault.where, fault.line, fault.column) == ("image", 5, 4)
    assert why in fault.message


MATRIX = """#!/bin/bash
#: name = "a"
#: variety = "basic"
#: target = "box"
#: image = "docker.io/library/${{ matrix.of }}"
#: [matrix]
#: of = ["rust@sha256:DIGEST", "rust:1.85"]
""".replace("DIGEST", "cd" * 32)


def test_a_matrix_fills_in_the_image(boxed: Twin, ada: User) -> None:
    good, bad = f"rust@sha256:{'cd' * 32}", "rust:1.85"
    job = job_of(boxed, submitting.submit(boxed.on, ada, SubmitJob(MATRIX, matrix={"of": good}), None))
    assert job.request.needs[0].options == {"image": f"docker.io/library/{good}"}
    with pytest.raises(Refused) as found:
        submitting.submit(boxed.on, ada, SubmitJob(MATRIX, matrix={"of": bad}), None)
    assert "`docker.io/library/rust:1.85` does not name an image by its digest" in found.value.faults[0].message


def test_an_image_that_the_site_allows_is_taken(boxed: Twin, ada: User) -> None:
    image = f"docker.io/library/rust@sha256:{'cd' * 32}"
    job = job_of(boxed, submit(boxed, ada, target="box", image=image))
    assert [need.options for need in job.request.needs] == [{"image": image}]


def test_a_request_may_say_services(boxed: Twin, ada: User) -> None:
    """They are checked as those of a file, and a retry has them again."""
    image = f"docker.io/library/postgres@sha256:{'cd' * 32}"
    said = {"db": {"image": image, "ready": "pg_isready"}}
    job = job_of(boxed, submit(boxed, ada, target="box", services=said))
    assert [need.options for need in job.request.needs] == [{"services": said}]
    again = submitting.retry(boxed.on, ada, job)
    assert job_of(boxed, again).request.needs == job.request.needs
    with pytest.raises(Refused) as found:
        submit(boxed, ada, target="box", services={"db": {"ready": "x"}})
    assert found.value.faults[0].where == "services.db"
