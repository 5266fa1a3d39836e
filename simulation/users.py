"""Users and operators cancel, read, resize, pause and apply; some try what they may not do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any
from zlib import crc32

from penstock.domain.commands import AcquireLease, AgentHost, Hello, SubmitJob
from penstock.domain.jobs import deadlines
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.pools import grants
from penstock.domain.pools.pools import Claim, Pool, demand, pool_key
from penstock.domain.pools.stops import WHOLE_SITE
from penstock.domain.site.site import SITE_KEY, TARGET_POOLS, SiteText
from penstock.domain.users.users import PRIORITY, User
from penstock.kernel.errors import Refused, Throttled, Unreached
from penstock.system import parse_site
from penstock.testing.twin import START
from penstock.usecases.jobs import cancel, jobs, leases, submit, submit_lease
from penstock.usecases.site import apply, stops
from penstock.usecases.workers import agents, hosts
from simulation import choices, operators, packings
from simulation.interfaces import Run
from simulation.scenario import CPUS, HEADER, HOST_CPUS
from simulation.tasks import Died, Task

ADA = User(name="ada", created=START, version=1, privileges=(PRIORITY,))
BEA = User(name="bea", created=START, version=1, privileges=(PRIORITY,))
EVE = User(name="eve", created=START, version=1)
PATH = "site.toml"


def user(number: int) -> User:
    """Who submits a job: of three, the last is another's."""
    return BEA if number % 3 == 2 else ADA


def owner(job: Job) -> User:
    """Who may cancel a job; ada tries it with canaries."""
    return BEA if job.owner == BEA.name else ADA


def _types(ask: Mapping[str, Any]) -> set[str]:
    """The types of resources that a job asks for."""
    return {each["type"] for each in ask["resources"].values()}


class People:
    """Everybody who calls the API."""

    def __init__(self, engine: Run) -> None:
        self._engine = engine
        self.left = list(enumerate(engine.plan.jobs))

    def submit(self) -> None:
        """Submit the next job; repeat it with the same key if the function died, and later if a service refused."""
        number, ask = self.left.pop(0)
        self._submit(number, ask)

    def _submit(self, number: int, ask: dict[str, Any]) -> None:
        engine = self._engine

        def answered(task: Task) -> None:
            if task.error is None:
                engine.story.call(task.result, f"job-{number + 1}")
                engine.promises.accepted(task.result)
            elif isinstance(task.error, Died):
                self._submit(number, ask)
            elif isinstance(task.error, Throttled | Unreached):
                self.left.append((number, ask))
            elif isinstance(task.error, Refused) and engine.plan.late & self._lacking(_types(ask)):
                self.left.append((number, ask))
                self._grow(_types(ask))

        self._do(
            f"submit job {number + 1}",
            lambda: self._accept(number, ask),
            answered,
        )

    def _accept(self, number: int, ask: dict[str, Any]) -> str:
        """A job, or a lease without one."""
        on, by, key = self._engine.on, user(number), str(number)
        if ask.get("is_lease"):
            lease = AcquireLease(ask["resources"], for_=ask["timeout"], priority=ask["priority"])
            return submit_lease.acquire(on, by, lease, key)
        job = submit.submit(on, by, SubmitJob(**{name: said for name, said in ask.items() if name != "is_lease"}), key)
        self._check_machine(job, ask)
        needs = ask.get("machine", {})
        self._engine.asked[job] = needs.get("cpus", 0), int(str(needs.get("memory", "0")).removesuffix("GiB")) * 1024
        return job

    def _check_machine(self, job: str, ask: Mapping[str, Any]) -> None:
        """Whoever says how many CPUs a job needs gets a target that has as many."""
        row, needs = self._engine.store.rows.get(job_key(job)), ask.get("machine", {}).get("cpus", 0)
        if isinstance(row, Job) and needs and CPUS.get(row.request.target_resolved, HOST_CPUS) < needs:
            raise AssertionError(f"{job} needs {needs} CPUs, and got {row.request.target_resolved}")

    def _do(self, what: str, call: Callable[[], Any], then: Callable[[Task], None] = lambda _: None) -> None:
        self._engine.begin(what, call, then)

    def _try(self, what: str, call: Callable[[], Any]) -> None:
        self._engine.begin(f"intruder: {what}", call, lambda _: None, intruder=True)

    def act(self) -> None:
        """Somebody does something."""
        doings = [
            self._cancel, self._cancel, self._look, self._resize, self._pause, self._apply, self._intrude,
            self._operate, self._operate,
        ]  # fmt: skip
        doings += [self._press] * 3 if self._engine.outside.controller else []
        self._engine.dice.choice(doings)()

    def _press(self) -> None:
        """Somebody switches a host by hand."""
        controller, hosts = self._engine.outside.controller, self._engine.plan.shape.hosts
        if controller:
            controller.press(self._engine.dice.choice(hosts))

    def _some_job(self) -> Job | None:
        found = [row for row in self._engine.store.rows.values() if isinstance(row, Job)]
        return self._engine.dice.choice(found) if found else None

    def _some_pool(self) -> Pool:
        found = [row for row in self._engine.store.rows.values() if isinstance(row, Pool)]
        return self._engine.dice.choice(sorted(found, key=lambda pool: pool.name))

    def _cancel(self) -> None:
        job = self._some_job()
        if job:
            by = owner(job)
            self._do(f"{by.name} cancels {job.id}", lambda: cancel.cancel(self._engine.on, by, job.id))

    def _look(self) -> None:
        job, on = self._some_job(), self._engine.on
        if job is None:
            return
        by = owner(job)
        if deadlines.ends(job) is None or not job.is_lease:
            self._do(f"ada asks why {job.id}", lambda: jobs.explain(on, job))
        elif crc32(job.id.encode()) % 3:  # no dice: one more would make another story of each seed
            self._do(f"{by.name} releases {job.id}", lambda: leases.release(on, by, job.id))
        else:
            self._do(f"{by.name} renews {job.id}", lambda: leases.renew(on, by, job.id, job.limits.timeout))

    def _resize(self) -> None:
        pool, limit = self._some_pool(), self._engine.dice.choice((0, 1, 2, 4))
        self._do(f"resize {pool.name} to {limit}", lambda: apply.resize(self._engine.on, pool.name, limit))

    def _pause(self) -> None:
        pool, drawn = self._some_pool(), self._engine.dice.random()
        if pool.name.startswith(TARGET_POOLS):
            self._stop(drawn)
            return
        paused = drawn < 0.5
        what = "pause" if paused else "resume"
        self._do(f"{what} {pool.name}", lambda: apply.pause(self._engine.on, pool.name, paused=paused))

    def _stop(self, drawn: float) -> None:
        """Stop or drain a factory, or the whole site; or lift one of these.

        One number decides all of it: further ones would make another story of each seed that stops nothing.
        """
        applied = self._engine.store.rows.get(SITE_KEY)
        makers = parse_site(applied.toml).factories if isinstance(applied, SiteText) else {}
        scope = WHOLE_SITE if drawn * 100 % 1 < 0.3 or not makers else f"factory/{min(makers)}"
        on, drains = self._engine.on, scope != WHOLE_SITE and drawn < 0.15
        if drawn < 0.4:
            self._do(f"stop {scope}", lambda: stops.stop(on, "root", scope, "to see", drains=drains))
        else:
            self._do(f"lift the stop of {scope}", lambda: stops.lift(on, "root", scope))

    def _apply(self) -> None:
        shape = self._engine.plan.shape
        toml = (shape.varied(self._engine.dice) if self._engine.dice.random() < 0.6 else shape).toml()
        self._do("apply a site", lambda: apply.apply(self._engine.on, "root", toml, PATH))

    def _lacking(self, types: Iterable[str]) -> set[str]:
        """Which of some types of resources the site has not."""
        applied = self._engine.store.rows.get(SITE_KEY)
        there = parse_site(applied.toml).resources if isinstance(applied, SiteText) else {}
        return set(types) - there.keys()

    def _grow(self, types: set[str]) -> None:
        """An operator adds the types that the site lacks, because a job was refused that asks for them.

        In a site with faults the function often ends between the site and its pools, which the next sweep makes then.
        """
        engine, plan = self._engine, self._engine.plan
        toml = plan.shape.without(self._lacking(plan.late) - types).toml()
        engine.begin(
            "apply a site with more types",
            lambda: apply.apply(engine.on, "root", toml, PATH),
            lambda _: None,
            dies_at=1 if engine.weather.die and engine.dice.random() < 0.5 else 0,
        )

    def _operate(self) -> None:
        found = operators.act(self._engine)
        if found:
            self._do(*found)

    def restore(self, late: Collection[str] = ()) -> None:
        """Operators undo what they changed, and repeat each call until it succeeds. `late`: types that come later."""
        on, shape = self._engine.on, self._engine.plan.shape.without(late)
        apply.apply(on, "root", shape.toml(), PATH)
        for pool in sorted(
            (row for row in self._engine.store.rows.values() if isinstance(row, Pool)), key=lambda p: p.name
        ):
            apply.pause(on, pool.name, paused=False)
        for stop in stops.list_stops(on):
            stops.lift(on, "root", stop.scope)
        apply.apply(on, "root", shape.toml(), PATH)
        self._give_up()

    def _give_up(self) -> None:
        """Users cancel jobs that the site can no longer serve, which would wait until their queue deadline."""
        rows = list(self._engine.store.rows.values())
        limits = {row.name: row.limit for row in rows if isinstance(row, Pool)}
        for job in (row for row in rows if isinstance(row, Job) and not row.is_settled):
            steps = [
                demand(need for need in job.request.needs if need.step == step)
                for step in {n.step for n in job.request.needs}
            ]
            is_too_much = any(count > limits.get(pool, 0) for wanted in steps for pool, count in wanted.items())
            if is_too_much or self._fits_nothing(job):
                cancel.cancel(self._engine.on, owner(job), job.id)

    def _fits_nothing(self, job: Job) -> bool:
        """Whether a job chooses among things that the site does not have, or not as many."""
        store, now = self._engine.store, self._engine.world.now()
        steps = {need.step for need in job.request.needs}
        for claim in (claim for step in steps for claim in grants.claims(job, step, now) if claim.choices):
            pool = store.rows.get(pool_key(claim.pool))
            if isinstance(pool, Pool) and pool.names is not None and not self._could_have(claim, pool):
                return True
        return False

    def _could_have(self, claim: Claim, pool: Pool) -> bool:
        """Whether a claim could be granted if nobody had anything of a pool of names."""
        if pool.share:
            return bool(packings.Hosts(pool, pool.names or (), {}).fit(claim))
        return choices.can_have(claim, pool, pool.names or ())

    def keep_nothing(self) -> None:
        """The operators turn warm units off."""
        plain = replace(self._engine.plan.shape, warm={})
        apply.apply(self._engine.on, "root", plain.toml(), PATH)

    def _intrude(self) -> None:
        """Calls that must be refused, whoever makes them. [SEC-2]"""
        engine, job = self._engine, self._some_job()
        ask = SubmitJob(HEADER, target="vault")
        tries: list[tuple[str, Callable[[], Any]]] = [
            ("submits to the vault", lambda: submit.submit(engine.on, EVE, ask, None))
        ]
        machines = list(engine.machines.values())
        if engine.plan.shape.hosts:
            host, says = engine.plan.shape.hosts[0], AgentHost("s" * 43)
            tries.append((f"eve speaks for {host}", lambda: hosts.poll(engine.on, EVE, host, says)))
        if job:
            tries.append((f"eve cancels {job.id}", lambda: cancel.cancel(engine.on, EVE, job.id)))
            other = next((one for one in machines if one.state == "running" and one.job != job.id), None)
            if other:
                token = other.token
                tries.append((f"{other.id} acts for {job.id}", lambda: agents.authenticate(engine.on, job.id, token)))
        if machines:
            one = engine.dice.choice(machines)
            tries.append((f"hello as {one.id}", lambda: agents.hello(engine.on, Hello(one.id, "0" * 64, "t" * 43))))
        self._try(*engine.dice.choice(tries))
