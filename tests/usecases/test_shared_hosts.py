"""Several jobs on one host: parts, owners, presence, and giving back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.domain.commands import AgentHost
from penstock.domain.jobs.jobs import Outcome
from penstock.domain.pools.grants import Pick
from penstock.domain.pools.pools import Claim, Pool, Sharing, Slot, SlotName, SlotState, collection, pool_key
from penstock.domain.units.power import PowerOrder
from penstock.domain.units.units import UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create, Replace, Row
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel, jobs
from penstock.usecases.pools import serving
from penstock.usecases.pools.serving import Turn
from penstock.usecases.units import bells
from penstock.usecases.workers import hosts
from tests.usecases.lab_hosts import IMAGE, LEASE, SHARED, Bench, Part, apply, host_of, lab, states
from tests.usecases.races import before_the_next_get, before_the_next_read, before_the_next_write_of
from tests.usecases.steps import job_of, submit, sweep, worker_of

OWN = f"registry.example.com/rust@sha256:{'b' * 64}"


def site(**changes: object) -> str:
    factory = {"driver": "hosts", "image": IMAGE, "images": ["registry.example.com/*"]}
    return site_toml(factories={"lab": factory}, targets={"lab": {**SHARED, **changes}})


@pytest.fixture
def twin() -> Twin:
    made = lab(site())
    for name in ("bench-7", "bench-8"):
        assert Bench(made, name).ask().parts == 4
    made.run()
    return made


@pytest.fixture
def eve() -> User:
    return User(name="eve", created=START)


def order(twin: Twin, user: User, **more: object) -> str:
    job = submit(twin, user, target="lab", **more)
    twin.run()
    return job


def parts_of(twin: Twin, job: str) -> set[str]:
    """The slots that a job has."""
    return {slot.name for slot in held(twin) if slot.job == job}


def held(twin: Twin) -> list[Slot]:
    return twin.store.find(collection("target/lab"), f"{SlotState.HELD}#", Slot)


def hosts_of(twin: Twin, job: str) -> set[str]:
    return {slot.thing for slot in held(twin) if slot.job == job}


def part(twin: Twin, job: str) -> Part:
    """The part on which a job's worker is."""
    host, _, number = worker_of(twin, job).lease.slot.partition("/")
    return Part(twin, host, int(number))


def test_jobs_of_one_owner_are_packed_on_one_host(twin: Twin, ada: User) -> None:
    found = [order(twin, ada, machine=needs) for needs in ({}, {"memory": "8GiB"}, {"cpus": 1})]
    assert [len(parts_of(twin, job)) for job in found] == [1, 2, 1]
    assert len({host for job in found for host in hosts_of(twin, job)}) == 1
    told = part(twin, found[1]).ask()
    assert told.container
    assert (told.container.image, told.container.cpus, told.container.memory) == (IMAGE, 2.0, 8192)


def test_owners_are_kept_apart_until_a_host_is_empty(twin: Twin, ada: User, eve: User) -> None:
    mine = [order(twin, ada), order(twin, ada, machine={"cpus": 4})]
    theirs = order(twin, eve)
    assert [len(hosts_of(twin, job)) for job in (*mine, theirs)] == [1, 1, 0], "one part of a host is free"
    said = jobs.explain(twin.on, job_of(twin, theirs)).summary
    assert "1 of the 4 parts of one host, on which only jobs of its owner run" in said
    first = part(twin, mine[0])
    assert first.run() == mine[0]
    twin.run()
    assert hosts_of(twin, theirs) == {first.name}


def test_a_site_may_let_anybody_share(ada: User, eve: User) -> None:
    twin = lab(site(share={"parts": 4, "serves": "site"}, names=["bench-7"]))
    Bench(twin).ask()
    found = [order(twin, user) for user in (ada, eve, ada)]
    assert [len(hosts_of(twin, job)) for job in found] == [1, 1, 1]


def test_each_part_has_a_worker_of_its_own(twin: Twin, ada: User) -> None:
    """A part that belongs to another's worker has nothing to do; what is free when one is clean serves the next."""
    large, small = order(twin, ada, machine={"cpus": 3}), order(twin, ada)
    (host,) = hosts_of(twin, large)
    workers = {slot.name: slot.unit for slot in held(twin)}
    told = {number: Part(twin, host, number) for number in range(1, 5)}
    asked = {number: each.ask() for number, each in told.items()}
    assert sorted(each.do for each in asked.values()) == ["wait", "wait", "work", "work"]
    assert {each.worker for each in told.values() if each.worker} == set(workers.values())
    waits = order(twin, ada, machine={"cpus": 2})
    assert hosts_of(twin, waits) not in (set(), {host})
    mine = next(each for each in told.values() if each.worker == worker_of(twin, large).id)
    assert mine.hello() == large
    mine.report(large)
    assert mine.clean().do == "forget"
    assert len([slot for slot in held(twin) if slot.thing == host]) == 1
    assert parts_of(twin, small)


def test_a_job_names_its_image(twin: Twin, ada: User) -> None:
    told = part(twin, order(twin, ada, image=OWN)).ask()
    assert told.container
    assert told.container.image == OWN


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"image": f"elsewhere.example.com/x@sha256:{'c' * 64}"}, "does not let a job choose this"),
        ({"services": {"db": {"image": OWN}}}, "does not let a job choose this"),
        ({"machine": {"cpus": 5}}, "no machine of lab fits"),
        ({"host": {"labels": "rack == 9"}}, "no host of lab fits rack == 9"),
    ],
)
def test_what_cannot_be_had_is_refused(twin: Twin, ada: User, asked: dict[str, object], said: str) -> None:
    with pytest.raises(Refused, match=said):
        order(twin, ada, **asked)


def test_a_host_that_falls_silent_takes_all_its_parts_along(twin: Twin, ada: User) -> None:
    order(twin, ada)
    Bench(twin, "bench-8").ask()
    (busy,) = {slot.thing for slot in held(twin)}
    sweep(twin, LEASE + 1)
    away = {name for name, state in states(twin).items() if state == "away"}
    assert len(away) == 7
    other = "bench-8" if busy == "bench-7" else "bench-7"
    Bench(twin, other).ask()
    assert {states(twin)[f"{other}/{number}"] for number in range(1, 5)} == {"free"}


def test_a_name_that_is_taken_out_drains_its_host(twin: Twin, ada: User) -> None:
    """What is free of it goes at once, the rest when its jobs end."""
    job = order(twin, ada)
    (busy,) = hosts_of(twin, job)
    apply(twin, site(names=["bench-7" if busy == "bench-8" else "bench-8"]))
    assert sorted(states(twin)[f"{busy}/{number}"] for number in range(1, 5)) == ["held", "off", "off", "off"]
    later = [order(twin, ada) for _ in range(4)]
    assert busy not in {host for each in later for host in hosts_of(twin, each)}
    assert part(twin, job).run() == job
    assert {states(twin)[f"{busy}/{number}"] for number in range(1, 5)} == {"off"}


def test_a_large_job_is_not_starved_by_small_ones(ada: User) -> None:
    """QUEUE-2: once it was overtaken often enough, nothing of the emptiest host is granted until all of it is free."""
    twin = lab(site(names=["bench-7"]))
    Bench(twin).ask()
    running = [order(twin, ada) for _ in range(3)]
    large = order(twin, ada, machine={"cpus": 4})
    for _ in range(30):
        if parts_of(twin, large):
            break
        running.append(order(twin, ada))
        having = [job for job in running if parts_of(twin, job)]
        assert part(twin, having[0]).run() == having[0]
        twin.run()
    assert len(parts_of(twin, large)) == 4
    assert part(twin, large).run() == large
    assert job_of(twin, large).end.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"share": {"parts": 1}}, "must be from 2 to 32"),
        ({"share": {"parts": 4, "serves": "team"}}, "cannot be 'team'"),
        ({"machine": {"cpus": 4}}, "how many cpus and how much memory"),
        ({"names": [f"bench-{number}" for number in range(40)], "share": {"parts": 32}}, "1000 parts in all"),
    ],
)
def test_sites_that_are_refused(twin: Twin, changes: dict[str, object], said: str) -> None:
    with pytest.raises(Refused) as refused:
        apply(twin, site(**changes))
    assert said in str(refused.value.faults), refused.value.faults


def test_hosts_that_jobs_share_need_an_image(twin: Twin) -> None:
    with pytest.raises(Refused) as refused:
        apply(twin, site_toml(factories={"lab": "hosts"}, targets={"lab": SHARED}))
    assert "its factory says no image for them" in str(refused.value.faults)


def test_two_owners_never_get_parts_of_one_host_at_the_same_time(ada: User, eve: User) -> None:
    """SEC-2: each sees it empty; the commit of the second names a part that the first has by then."""
    twin = lab(site(names=["bench-7"]))
    Bench(twin).ask()
    first: list[str] = []

    def meanwhile() -> None:
        twin.world.draw = lambda count: 1 % count  # type: ignore[method-assign]  # another part than the first takes
        first.append(order(twin, eve))

    before_the_next_write_of(twin, Slot, meanwhile)
    second = order(twin, ada)
    assert [len(parts_of(twin, job)) for job in (*first, second)] == [1, 0]


def test_a_host_moves_to_another_target_once_none_of_its_parts_is_had(twin: Twin, ada: User) -> None:
    """SLOT-1: until then nothing of it is granted there."""
    job = order(twin, ada)
    (busy,) = hosts_of(twin, job)
    other = "bench-8" if busy == "bench-7" else "bench-7"
    target = {**SHARED, "names": [other]}
    moved = site_toml(
        factories={"lab": {"driver": "hosts", "image": IMAGE}},
        targets={"lab": target, "new": {**SHARED, "names": [busy]}},
    )
    apply(twin, moved)
    mine = part(twin, job)
    Bench(twin, busy).ask()
    assert set(states(twin, "target/new").values()) == {"away"}
    assert mine.run() == job
    Bench(twin, busy).ask()
    assert states(twin, "target/new") == {f"{busy}/{number}": "free" for number in range(1, 5)}


def test_a_second_machine_is_refused_while_a_part_of_the_first_works(twin: Twin, ada: User) -> None:
    """JOB-2: a job may run there although the host's agent fell silent."""
    job = order(twin, ada)
    mine = part(twin, job)
    assert mine.do() == "work"
    assert mine.hello() == job
    for _ in range(4):
        twin.pass_time(45)
        mine.beat(job)
        sweep(twin, 1)
    with pytest.raises(Refused, match="is served by another agent"):
        Bench(twin, mine.name, "n").ask()


def test_a_part_is_told_to_wait_until_its_image_is_known(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="lab")
    mine = part(twin, job)
    assert worker_of(twin, job).creation.metadata == {}
    told = mine.ask()  # the factory's function runs with the message that this call leads to
    assert (told.do, told.seconds) == ("wait", 1)
    assert mine.do() == "work"


def test_jobs_that_waited_before_hosts_were_shared_get_one_part_each(ada: User) -> None:
    """QUEUE-1: they chose nothing, and what they get is known all the same."""
    twin = lab(site(names=["bench-7"], share=False))
    waiting = [order(twin, ada) for _ in range(2)]
    apply(twin, site(names=["bench-7"]))
    Bench(twin).ask()
    assert [len(parts_of(twin, job)) for job in waiting] == [1, 1]


def test_a_job_that_wants_more_parts_than_a_host_has_now_says_so(ada: User) -> None:
    twin = lab(site(names=["bench-7"]))
    job = order(twin, ada, machine={"cpus": 4})
    apply(twin, site(names=["bench-7"], share={"parts": 2}))
    Bench(twin).ask()
    assert "4 parts of one host, and a host has 2 now" in jobs.explain(twin.on, job_of(twin, job)).summary


def test_who_waits_for_another_host_does_not_hold_up_the_owner_of_this_one(ada: User, eve: User) -> None:
    """QUEUE-1: the first of each owner asks to be served, though somebody else's claim stands before it."""
    twin = lab(site(names=["bench-7"]))
    Bench(twin).ask()
    order(twin, ada)
    waits = order(twin, eve)
    second = order(twin, ada)
    assert [len(parts_of(twin, job)) for job in (waits, second)] == [0, 1]


def test_what_a_quota_gives_is_no_part_of_the_host(ada: User) -> None:
    factory = {"driver": "hosts", "image": IMAGE}
    target = {**SHARED, "uses": {"seats": 2}}
    twin = lab(site_toml(factories={"lab": factory}, targets={"lab": target}, quotas={"seats": {"amount": 4}}))
    Bench(twin).ask()
    told = part(twin, order(twin, ada)).ask()
    assert told.container
    assert told.container.cpus == 1.0


def test_hosts_whose_names_begin_alike_are_not_confused(ada: User) -> None:
    """JOB-2, SLOT-1: bench-70 works; that keeps neither another machine of bench-7 out, nor bench-7 in its target."""
    twin = lab(site(names=["bench-7", "bench-70"]))
    Bench(twin, "bench-70").ask()
    job = order(twin, ada)
    far = part(twin, job)
    assert far.do() == "work"
    assert far.hello() == job
    Bench(twin, "bench-7").ask()
    for _ in range(4):
        twin.pass_time(45)
        far.beat(job)
        sweep(twin, 1)
    assert Bench(twin, "bench-7", "n").ask().parts == 4
    targets = {"lab": {**SHARED, "names": ["bench-70"]}, "new": {**SHARED, "names": ["bench-7"]}}
    apply(twin, site_toml(factories={"lab": {"driver": "hosts", "image": IMAGE}}, targets=targets))
    Bench(twin, "bench-7", "n").ask()
    assert set(states(twin, "target/new").values()) == {"free"}


def test_many_grants_on_large_hosts_fit_into_their_commits(ada: User) -> None:
    """Each names all parts of its host: several of them are too many for one commit."""
    twin = lab(site(names=[f"bench-{number}" for number in range(1, 9)], share={"parts": 32}))
    users = [User(name=f"user-{number}", created=START) for number in range(1, 9)]
    waiting = [order(twin, user) for user in users]
    for number in range(1, 9):
        host = Bench(twin, f"bench-{number}")
        hosts.poll(twin.on, host.user, host.name, AgentHost("s" * 43, "machine"))
    twin.run()
    assert [len(parts_of(twin, job)) for job in waiting] == [1] * 8


def test_many_who_share_a_host_that_serves_anybody_fit_into_their_commits(ada: User, eve: User) -> None:
    """JOB-2: each commit checks the host's pool, though nobody is kept apart and so no other part is checked."""
    twin = lab(site(names=["bench-7"], machine={"cpus": 32, "memory": "64GiB"}, share={"parts": 32, "serves": "site"}))
    waiting = [order(twin, user) for _ in range(12) for user in (ada, eve)]
    Bench(twin).ask()
    assert [len(parts_of(twin, job)) for job in waiting] == [1] * 24


def test_the_pool_of_those_who_share_is_checked_once_a_commit() -> None:
    """However many of its claims the commit grants."""
    pool = Pool(name="target/lab", limit=1, share=Sharing(4))
    assert [serving._is_named_once(each) for each in (pool, replace(pool, share=None))] == [True, False]
    assert serving._is_named_once(Pool(name="quota/seats", limit=1, is_amount=True))


def test_what_a_grant_checks_beside_is_counted_for_its_own_step(twin: Twin, ada: User) -> None:
    job = job_of(twin, order(twin, ada))
    claims = {
        step: Claim(pool="p", job=job.id, attempt=1, step=step, count=1, pools=("p",), priority=0, since=START)
        for step in (0, 1)
    }
    turns = [Turn(Pick({"p": claims[step]}, ()), of, ()) for step, of in ((0, job), (1, job), (0, None))]
    assert [turn.beside for turn in turns] == [3, 0, 0]


def test_a_part_that_comes_back_between_two_reads_is_not_overlooked(ada: User, eve: User) -> None:
    """SEC-2: it was read neither as free nor as held, so the commit would not name it; then another owner gets it."""
    twin = lab(site(names=["bench-7"]))
    Bench(twin).ask()
    twin.world.draw = lambda count: 0  # type: ignore[method-assign]
    last = part(twin, order(twin, eve))

    def meanwhile() -> None:
        last.run()
        before_the_next_write_of(twin, Slot, lambda: order(twin, eve))

    before_the_next_read(twin, f"{SlotState.HELD}#", meanwhile)
    order(twin, ada)
    assert [slot.owner for slot in held(twin)] == ["eve"]


def test_why_a_container_could_not_be_started_is_the_reason_of_the_attempt(twin: Twin, ada: User) -> None:
    job = order(twin, ada, retries=0)
    mine = part(twin, job)
    assert mine.do() == "work"
    mine.stage = "ended"
    mine.ask(trouble="its container cannot be started: manifest unknown")
    assert "manifest unknown" in str(job_of(twin, job).end.reason)


def test_a_host_waits_for_the_bell_of_the_part_that_is_granted_next(twin: Twin, ada: User) -> None:
    """So one poll is enough for all of its parts, until they have workers."""
    own = Bench(twin)
    said = own.ask()
    assert (said.do, said.busy, said.seconds) == ("wait", None, bells.IDLE_SECONDS)
    assert said.bell
    assert Part(twin, "bench-7", 3).ask().bell == "memory://bells/target/lab/bench-7/3/1"
    for cpus, busy in ((2, (1,)), (1, (1, 3)), (1, (1, 3, 4))):
        job = order(twin, ada, machine={"cpus": cpus})
        slot = worker_of(twin, job).lease.slot
        assert said.bell == f"memory://bells/target/lab/{slot}/1"
        said = Bench(twin, slot.partition("/")[0]).ask()
        assert (said.busy, said.parts) == (busy, 4)
        assert Part(twin, slot.partition("/")[0], 4).ask().busy is None
        assert Part(twin, slot.partition("/")[0], 2).ask().bell is None
    assert (said.bell, said.seconds) == (None, 5)


@pytest.mark.parametrize("name", ["lab", "new"])
def test_no_job_gets_a_container_on_a_host_that_is_not_shared_any_more(twin: Twin, ada: User, name: str) -> None:
    """Nor a process: it waits, and is given up as a worker that did not boot."""
    mine = part(twin, order(twin, ada))
    plain = {key: value for key, value in SHARED.items() if key != "share"}
    factories = {"lab": {"driver": "hosts", "image": IMAGE}}
    apply(twin, site_toml(factories=factories, targets={name: plain}))
    told = mine.ask()
    assert (told.do, told.container) == ("wait", None)


def test_a_part_that_is_gone_from_the_site_is_cleaned_though_its_agent_forgot_it(ada: User) -> None:
    """UNIT-2: the host's own poll is told of it, or nobody would ask for it."""
    twin = lab(site(names=["bench-7"]))
    host = Bench(twin)
    host.ask()
    jobs_ = [order(twin, ada, machine={"cpus": 2}) for _ in range(2)]
    last = part(twin, jobs_[1])
    assert last.part == 3
    assert last.do() == "work"
    apply(twin, site(names=["bench-7"], share={"parts": 2}))
    assert host.ask().busy == (1, 3)
    anew = Part(twin, "bench-7", 3)
    assert anew.ask().parts == 2
    for job in jobs_:
        cancel.cancel(twin.on, ada, job)
    sweep(twin, 1)
    twin.run()
    anew.worker, anew.stage = last.worker, "ended"
    assert anew.clean().do == "forget"
    assert host.ask().busy == (1,)


def test_a_host_with_jobs_of_two_owners_serves_neither_when_owners_are_to_be_apart(ada: User, eve: User) -> None:
    """SEC-2: until it is empty. Which of them came last does not matter."""
    twin = lab(site(names=["bench-7"], share={"parts": 4, "serves": "site"}))
    Bench(twin).ask()
    first, second = order(twin, ada), order(twin, eve)
    apply(twin, site(names=["bench-7"]))
    Bench(twin).ask()
    waiting = [order(twin, user) for user in (ada, eve)]
    assert [len(parts_of(twin, job)) for job in (first, second, *waiting)] == [1, 1, 0, 0]


def test_an_image_is_refused_where_jobs_run_on_the_host_itself(ada: User) -> None:
    """SEC-2: else the job would run without a container, and nobody would say so."""
    twin = lab(site(names=["bench-7"], share=False))
    Bench(twin).ask()
    job = job_of(twin, order(twin, ada, image=OWN))
    assert job.end.outcome is not Outcome.SUCCEEDED
    assert "jobs run on host bench-7 itself" in str(job.end.reason)


def test_a_second_machine_waits_while_a_worker_of_the_first_cannot_be_read(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JOB-2: rows that are read together may be left out. So these are read one by one."""
    job = order(twin, ada)
    mine = part(twin, job)
    assert mine.do() == "work"
    assert mine.hello() == job
    for _ in range(4):
        twin.pass_time(45)
        mine.beat(job)
        sweep(twin, 1)
    monkeypatch.setattr(twin.store, "rows_at", lambda keys: {})
    with pytest.raises(Refused, match="is served by another agent"):
        Bench(twin, mine.name, "n").ask()


def test_a_host_that_the_site_took_out_hears_of_its_parts_until_they_are_clean(twin: Twin, ada: User) -> None:
    """UNIT-1: its agent did not know of one when the name went, and nobody else can clean it."""
    job = order(twin, ada, machine={"cpus": 1}, retries=0)
    mine = part(twin, job)
    apply(twin, site(names=[name for name in ("bench-7", "bench-8") if name != mine.name]))
    host = Bench(twin, mine.name)
    for _ in range(12):
        said = host.ask()
        assert (said.do, said.parts, said.busy) == ("wait", None, (mine.part,))
        mine.ask()
        sweep(twin, 61)
    assert job_of(twin, job).is_settled
    mine.worker = worker_of(twin, job).id
    assert mine.clean().do == "forget"
    assert worker_of(twin, job).state is UnitState.GONE
    assert held(twin) == []
    with pytest.raises(Refused, match="host") as refused:
        host.ask()
    assert refused.value.status == 404


@pytest.mark.parametrize("read", [Pool, PowerOrder])
def test_a_host_that_moves_takes_the_parts_along_that_its_last_target_makes_meanwhile(
    twin: Twin, read: type[Row]
) -> None:
    """SLOT-1: they would stay free in a pool that it serves no more, and a job that gets one would never start. They
    are made before the host's call reads the pool, or after it has read all slots.
    """
    lab_and_rack = {"lab": {**SHARED, "names": ["bench-8"]}, "rack": {**SHARED, "names": ["bench-7"]}}
    made = Slot(pool="target/lab", name="bench-7/5", state=SlotState.FREE)

    def grow() -> None:
        pool = twin.store.get(pool_key(made.pool), Pool)
        assert pool
        assert twin.store.commit([Replace(pool, pool), Create(SlotName(pool=made.pool, name=made.name)), Create(made)])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin, "run", lambda: None)
        apply(twin, site_toml(factories={"lab": {"driver": "hosts", "image": IMAGE}}, targets=lab_and_rack))
        before_the_next_get(twin, read, grow)
        Bench(twin).ask()
    assert host_of(twin).pool == "target/rack"
    assert {state for name, state in states(twin).items() if name.startswith("bench-7/")} == {"off"}
