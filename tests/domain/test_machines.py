"""Which target of a family a job gets: the cheapest that fits, one with a worker sooner, or a cheaper warm one."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.jobfile.machine import Lack, Machine, Size, check_machine, lacking
from penstock.domain.jobs.jobs import Request
from penstock.domain.money import Micros
from penstock.domain.pools.pools import HoldTimes, Sharing
from penstock.domain.site import machines
from penstock.domain.site.machines import Stand, Standing, Taken
from penstock.domain.site.site import Maker, Site, Target
from penstock.kernel.errors import Refused
from penstock.toml.checks import Place

GIB = 1024**3


def machine(**keys: Any) -> Machine:
    place = Place(("machine",))
    found = check_machine(keys, place)
    assert not place.faults
    return found


SMALL = Target("small", "here", 4, price=Micros(100), machine=machine(cpus=2, memory="4GiB", arch="x86_64"))
LARGE = Target("large", "here", 2, price=Micros(150), machine=machine(cpus=8, memory="32GiB", gpu=1, arch="x86_64"))
ARM = Target("arm", "here", 2, price=Micros(100), machine=machine(cpus=4, memory="8GiB", arch="arm64"))
FAMILY = Target("any", machines=("large", "small", "arm"))
MEMBERS = [LARGE, SMALL, ARM]
SITE = Site(
    factories={"here": Maker("here", "process")},
    targets={each.name: each for each in (*MEMBERS, FAMILY, Target("old", "here", 1), Target("def", redirect="any"))},
)


def everybody(target: Target) -> bool:
    return target.name != "nobody's"


def names(found: list[Target]) -> list[str]:
    return [target.name for target in found]


@pytest.mark.parametrize(
    ("size", "said"), [(1024**2, "1MiB"), (1536 * 1024**2, "1536MiB"), (16 * GIB, "16GiB"), (2048 * GIB, "2TiB")]
)
def test_sizes_are_shown_as_files_have_them(size: int, said: str) -> None:
    assert (str(Size(size)), machine(memory=said).memory) == (said, size)


@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        (3, "`machine` wants a table", "like { cpus = 4"),
        ({"cpu": 4}, "unknown key `cpu`", "did you mean `cpus`?"),
        ({"cpus": 0}, "`machine.cpus` must be from 1 to 4096", None),
        ({"cpus": "4"}, "`machine.cpus` wants a whole number", "without quotes"),
        ({"gpu": 65}, "`machine.gpu` must be from 0 to 64", None),
        ({"memory": 16}, '`machine.memory` wants a size like "16GiB", not a whole number', "MiB, GiB, TiB"),
        ({"memory": "16GB"}, "`machine.memory`: `16GB` is not a size like 16GiB", "MiB, GiB, TiB"),
        ({"memory": "0GiB"}, "`machine.memory` must be from 1MiB to 1024TiB", None),
        ({"scratch": "1025TiB"}, "`machine.scratch` must be from 1MiB to 1024TiB", None),
        ({"arch": "ARM 64"}, "`machine.arch`: `ARM 64` is not an architecture", "x86_64"),
    ],
)
def test_a_machine_that_cannot_be_is_told(value: object, message: str, hint: str | None) -> None:
    place = Place(("machine",))
    check_machine(value, place)
    (fault,) = place.faults
    assert message in fault.message
    assert (hint or "") in (fault.hint or "")


def test_the_bounds_themselves_may_be_said() -> None:
    assert machine(cpus=4096, memory="1MiB", scratch="1024TiB", gpu=0).said == {
        "cpus": 4096,
        "memory": "1MiB",
        "scratch": "1024TiB",
    }


@pytest.mark.parametrize(
    ("needs", "has", "lacks"),
    [
        ({}, {}, []),
        ({"gpu": 0}, {}, []),
        ({"cpus": 2, "memory": "4GiB", "arch": "x86_64"}, {"cpus": 2, "memory": "4GiB", "arch": "x86_64"}, []),
        ({"cpus": 2}, {"cpus": 8}, []),
        ({"cpus": 12}, {"cpus": 8}, ["cpus = 12 is 4 more than its 8"]),
        ({"memory": "6GiB"}, {"memory": "4GiB"}, ['memory = "6GiB" is 2GiB more than its 4GiB']),
        ({"arch": "arm64"}, {"arch": "x86_64"}, ['arch = "arm64", and its arch is x86_64']),
        ({"arch": "a", "gpu": 1}, {}, ["gpu = 1, and its gpu is not known", 'arch = "a", and its arch is not known']),
        ({"gpu": 2}, {"gpu": 0}, ["gpu = 2 is 2 more than its 0"]),
    ],
)  # fmt: skip
def test_what_a_machine_lacks_is_told_key_by_key(needs: dict[str, Any], has: dict[str, Any], lacks: list[str]) -> None:
    assert list(map(str, lacking(machine(**needs), machine(**has)))) == lacks


def test_how_much_is_missing_is_a_part_of_what_is_asked() -> None:
    assert Lack("cpus", 8, 6).part == 0.25
    assert [Lack("cpus", 8, None).part, Lack("arch", "arm64", "x86_64").part] == [1.0, 1.0]


def test_of_what_fits_the_cheapest_comes_first_and_then_the_first_of_the_list() -> None:
    assert names(machines.fitting(MEMBERS, Machine(), everybody)) == ["small", "arm", "large"]
    assert names(machines.fitting(MEMBERS, machine(cpus=3), everybody)) == ["arm", "large"]
    assert machines.fitting(MEMBERS, machine(cpus=9), everybody) == []
    unpriced = [Target("b", "here", 1), Target("a", "here", 1)]
    assert names(machines.fitting(unpriced, Machine(), everybody)) == ["b", "a"]


def test_what_a_job_cannot_have_is_passed_over_if_another_fits() -> None:
    """SEC-2 is not decided here: what only a privilege opens is refused later, for that."""
    closed = Target("closed", "here", 0, price=Micros(1), machine=SMALL.machine)
    assert names(machines.fitting([closed, LARGE], Machine(), everybody)) == ["large"]
    assert names(machines.fitting([closed], Machine(), everybody)) == ["closed"]
    assert names(machines.fitting([SMALL, LARGE], Machine(), lambda each: each is LARGE)) == ["large"]
    assert names(machines.fitting([SMALL], Machine(), lambda _: False)) == ["small"]


@pytest.mark.parametrize(
    ("band", "inside"), [(1, ["small", "arm"]), (1.49, ["small", "arm"]), (1.5, ["small", "arm", "large"])]
)
def test_a_band_is_from_the_cheapest_that_fits(band: float, inside: list[str]) -> None:
    assert names(machines.in_band([SMALL, ARM, LARGE], Machine(), band)) == inside


def test_a_warm_worker_is_sooner_than_a_free_slot_and_that_than_a_queue() -> None:
    small, large, arm = (Standing(each, Stand.BUSY) for each in (SMALL, LARGE, ARM))
    assert machines.soonest([small, arm, large]) == small
    assert machines.soonest([small, Standing(ARM, Stand.FREE), large]).target is ARM
    assert machines.soonest([small, Standing(ARM, Stand.FREE), Standing(LARGE, Stand.WARM)]).target is LARGE
    assert machines.soonest([Standing(SMALL, Stand.FREE), Standing(ARM, Stand.FREE)]).target is SMALL


@pytest.mark.parametrize(
    ("hold", "wait", "boot", "found"),
    [
        (160.0, 60.0, 60.0, ["large"]),  # 150 * 100 < 100 * (100 + 60)
        (150.0, 50.0, 50.0, []),  # as much is not cheaper
        (1000.0, 60.0, 60.0, []),
        (160.0, 0.0, 60.0, []),  # of a release that did not count the wait: nothing is taken off
        (10.0, 60.0, 60.0, ["large"]),  # a use is never negative
    ],
)
def test_a_dearer_warm_worker_serves_if_a_new_one_would_cost_more(
    hold: float, wait: float, boot: float, found: list[str]
) -> None:
    times = HoldTimes(pool="p", holds=9, mean_hold=hold, mean_wait=wait, boots=3, mean_boot=boot)
    assert names(machines.worth_it(SMALL, [LARGE], Machine(), times)) == found


def test_without_a_measured_boot_nothing_dearer_is_taken() -> None:
    assert machines.worth_it(SMALL, [LARGE], Machine(), None) == []
    assert (
        machines.worth_it(SMALL, [LARGE], Machine(), HoldTimes(pool="p", holds=9, mean_hold=1.0, mean_boot=99.0)) == []
    )


def test_the_reason_says_what_was_asked_and_what_decided() -> None:
    need = machine(cpus=2)
    said = [
        machines.explain(FAMILY, Machine(), Standing(SMALL, Stand.WARM), SMALL),
        machines.explain(FAMILY, need, Standing(SMALL, Stand.BUSY), SMALL),
        machines.explain(FAMILY, need, Standing(LARGE, Stand.WARM), SMALL),
        machines.explain(FAMILY, Machine(), Standing(LARGE, Stand.FREE), SMALL),
        machines.explain_warm(FAMILY, need, LARGE, SMALL),
        machines.explain_warm(FAMILY, Machine(), LARGE, SMALL),
    ]
    assert said == [
        "small is the cheapest of any",
        "small is the cheapest of any that fits cpus = 2",
        "large has a warm worker, and its price is in the band of small, the cheapest of any that fits cpus = 2",
        "large has a free slot, and its price is in the band of small, the cheapest of any",
        "large has a warm worker, which is cheaper than a new one of small; both are of any and fit cpus = 2",
        "large has a warm worker, which is cheaper than a new one of small; both are of any",
    ]


@pytest.mark.parametrize(
    ("needs", "nearest"),
    [
        ({"cpus": 16}, "large: cpus = 16 is 8 more than its 8"),
        ({"cpus": 5, "arch": "arm64"}, "arm: cpus = 5 is 1 more than its 4"),
        ({"cpus": 2, "arch": "riscv"}, 'small: arch = "riscv", and its arch is x86_64'),
        ({"cpus": 9, "gpu": 2}, "large: cpus = 9 is 1 more than its 8; gpu = 2 is 1 more than its 1"),
    ],
)  # fmt: skip
def test_what_fits_nothing_is_refused_with_the_nearest(needs: dict[str, Any], nearest: str) -> None:
    found = machines.refuse("any", MEMBERS, machine(**needs))
    assert (found.status, found.code) == (422, "unsatisfiable")
    assert found.detail == f"no machine of any fits {machine(**needs)}: the nearest is {nearest}"
    assert [(each.where, each.hint) for each in found.faults] == [("machine", f"the nearest is {nearest}")]


def test_a_target_that_is_no_family_is_checked_too() -> None:
    others = list(SITE.targets.values())
    assert machines.check_plain(SMALL, machine(cpus=2), others) == Taken(SMALL)
    assert machines.check_plain(SITE.targets["old"], Machine(), others) == Taken(SITE.targets["old"])
    refused = machines.check_plain(SMALL, machine(cpus=3), others)
    assert isinstance(refused, Refused)
    assert refused.detail == "no machine of small fits cpus = 3: the nearest is small: cpus = 3 is 1 more than its 2"


@pytest.mark.parametrize(
    ("others", "hint"),
    [
        (list(SITE.targets.values()), "name one that does: large, small, arm, any"),
        ([Target(f"t{number}", machine=Machine()) for number in range(11)], "t8, t9"),
        ([], "no target says it: take `machine` out"),
    ],
)
def test_where_nobody_says_what_machines_have_needs_are_refused(others: list[Target], hint: str) -> None:
    refused = machines.check_plain(SITE.targets["old"], machine(cpus=3), others)
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code) == (422, "unsatisfiable")
    assert "target old does not say what its machines have" in refused.detail
    assert refused.detail.endswith(hint)


def test_a_family_has_no_pool_and_guards_those_of_its_members() -> None:
    """SEC-2: who loses the privilege of a family loses what was chosen of it."""
    assert SITE.resolve("def") is FAMILY
    assert SITE.pools().keys() == {"target/large", "target/small", "target/arm", "target/old"}
    assert SITE.members(SMALL) == [SMALL]
    guarded = Site(targets={**SITE.targets, "any": Target("any", machines=("small", "arm"), privilege="target.any")})
    assert guarded.guarded() == {"target/small", "target/arm"}
    assert names(SITE.asked_for("def", SMALL)) == ["def", "any", "small"]
    assert names(SITE.asked_for("small", SMALL)) == ["small"]
    lost = Site(targets={"lost": Target("lost", redirect="gone")})
    assert names(lost.asked_for("lost", SMALL)) == ["lost", "small"]


@pytest.mark.parametrize(
    ("target", "chosen", "said"),
    [("small", "", ""), ("small", "cheap", ""), ("any", "cheap", "cheap"), ("def", "", "asked for as def")],
)
def test_how_a_job_came_to_its_target_is_said_where_that_is_not_what_it_asked_for(
    target: str, chosen: str, said: str
) -> None:
    assert Request(target=target, target_resolved="small", needs=(), chosen=chosen).came_by == said


def test_of_a_host_that_jobs_share_a_job_pays_its_parts() -> None:
    """So a large host may be the cheapest for a small job, and a small machine for a large one."""
    shared = Target("shared", "here", 2, price=Micros(400), machine=machine(cpus=8, memory="32GiB"), share=Sharing(8))
    own = Target("own", "here", 2, price=Micros(100), machine=machine(cpus=4, memory="16GiB"))
    for cpus, price, order in ((1, 50, ["shared", "own"]), (2, 100, ["shared", "own"]), (3, 150, ["own", "shared"])):
        needs = machine(cpus=cpus)
        assert [machines.price_of(each, needs) for each in (shared, own)] == [price, 100]
        assert names(machines.fitting([shared, own], needs, everybody)) == order
    assert names(machines.in_band([shared, own], machine(cpus=1), 2)) == ["shared", "own"]
    assert names(machines.in_band([shared, own], machine(cpus=1), 1.9)) == ["shared"]
