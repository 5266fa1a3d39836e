"""What can never be is refused at once, in a sentence: that there is any, and that this could be had."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.jobfile import JobFile, ResourceAsk
from penstock.domain.jobs.admission import check_environment, check_names, check_satisfiable, privileges
from penstock.domain.jobs.jobs import UNTRUSTED, Provenance
from penstock.domain.pools.choices import Choice
from penstock.domain.pools.grants import WINDOW, rows_of_grant
from penstock.domain.pools.pools import Need
from penstock.domain.site.site import Environment, Maker, NamedThing, Quota, ResourceType, Site, Target
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from tests.domain.helpers import NOW

SITE = Site(
    factories={"here": Maker("here", "boxes", {"of": "factory"})},
    wells={"locks": Maker("locks", "lock")},
    targets={
        "linux": Target("linux", "here", 2, uses={"vcpus": 4}),
        "huge": Target("huge", "here", 2, uses={"vcpus": 9}),
        "greedy": Target("greedy", "here", 2, uses={f"q{number:02d}": 1 for number in range(30)}),
        "closed": Target("closed", "here", 0),
        "lab": Target("lab", "here", 1, privilege="target.lab"),
        "alias": Target("alias", redirect="lab", privilege="target.alias"),
        "zzz": Target("zzz", redirect="nowhere"),
    },
    resources={
        "bench": ResourceType("bench", "locks", 2, ("a", "b")),
        "secret": ResourceType("secret", "locks", 1, privilege="target.lab"),
        "many": ResourceType("many", "locks", 100),
        "rig": ResourceType(
            "rig", "locks", 2, ("r1", "r2"), leases=2, things={"r1": NamedThing({"board": "gimlet", "rack": "4"})}
        ),
    },
    quotas={"vcpus": Quota("vcpus", 8), **{f"q{number:02d}": Quota(f"q{number:02d}", 1) for number in range(30)}},
)
ADA, ROOT = User(name="ada", created=NOW), User(name="root", privileges=("admin",), created=NOW)


def file(target: str = "linux", *types: str) -> JobFile:
    return JobFile("job.sh", "", target=target, resources=tuple(ResourceAsk(f"{n}", t) for n, t in enumerate(types)))


def needs(asked: JobFile) -> list[Need]:
    target = SITE.resolve(asked.target)
    assert target
    found = [
        Need(
            order,
            1,
            ask.name,
            ask.type,
            f"resource/{ask.type}",
            "locks",
            ask.options,
            choice=ask.choice,
            slots=2 if ask.choice and ask.choice.exclusive else 1,
        )
        for order, ask in enumerate(asked.resources, 1)
    ]
    return [*found, Need(0, 0, "worker", target.name, target.pool, "here", uses=SITE.takes(target.uses))]


def nothing_against(kind: str, driver: str, options: Mapping[str, Any], *told: Mapping[str, Any]) -> Sequence[str]:
    return [f"{driver} knows no {name}" for name in options]


def look(asked: JobFile, user: User = ROOT) -> tuple[int, str, str] | None:
    found = check_names(SITE, asked)
    refused = (
        check_satisfiable(SITE, user, asked, needs(asked), nothing_against) if isinstance(found, Target) else found
    )
    return (refused.status, refused.code, refused.detail) if refused else None


@pytest.mark.parametrize("asked", [file(), file("alias"), file("linux", "bench", "bench"), file("linux", "secret")])
def test_what_could_be_is_not_refused(asked: JobFile) -> None:
    assert look(asked) is None


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        (file("linus"), "unknown-target", "there is no target 'linus'; did you mean 'linux'?"),
        (file("zzz"), "unknown-target", "there is no target 'zzz'; there are: alias, closed, greedy, huge, lab, linux"),
        (
            file("closed", "benhc"),
            "unknown-resource-type",
            "there is no resource type 'benhc'; did you mean 'bench'?",
        ),
        (file("closed"), "unsatisfiable", "target closed has a limit of 0: no job can run there"),
        (
            file("linux", "bench", "bench", "bench"),
            "unsatisfiable",
            "the job wants 3 of bench and there are 2: it could never run",
        ),
        (
            file("huge"),
            "unsatisfiable",
            "the job wants 9 of quota/vcpus at once and there are 8: it could never run",
        ),
        (
            file("linux", *["many"] * 30),
            "unsatisfiable",
            "the job wants 30 of many at once, with all that they use: a grant of up to 138 rows, and there is room "
            "for 100: ask for at most 20 of them, or let several jobs share them",
        ),
        (
            file("greedy"),
            "unsatisfiable",
            "the job wants 1 of greedy at once, with all that they use: a grant of up to 112 rows, and there is room "
            "for 100: ask for less",
        ),
    ],
)
def test_what_can_never_be_is_refused(asked: JobFile, code: str, said: str) -> None:
    assert look(asked) == (422, code, said)


PRODUCTION = Environment("production", ("ada", "oxide:hubris"), ("refs/heads/main",), ("target.lab",), ("bert",))
GUARDED = replace(SITE, environments={"production": PRODUCTION})
HUBRIS = User(name="oxide:hubris", created=NOW)
MAIN, OTHER = Provenance(vouched={"ref": "refs/heads/main"}), Provenance(vouched={"pull_request": "7"})
ASKS = replace(file("lab"), environment="production")


@pytest.mark.parametrize(
    ("user", "asked", "source"),
    [
        (ADA, ASKS, Provenance()),
        (User(name="adele", former=("ada",), created=NOW), ASKS, Provenance()),
        (HUBRIS, ASKS, MAIN),
    ],
)
def test_who_may_ask_for_an_environment(user: User, asked: JobFile, source: Provenance) -> None:
    assert check_names(GUARDED, asked) == GUARDED.targets["lab"]
    assert check_environment(GUARDED, user, asked, source) is PRODUCTION
    assert check_satisfiable(GUARDED, user, asked, needs(asked), nothing_against, PRODUCTION) is None
    without = check_satisfiable(GUARDED, user, asked, needs(asked), nothing_against)
    assert without is not None
    assert without.code == "privilege-missing"


def test_who_asks_for_no_environment_gets_none() -> None:
    assert check_environment(GUARDED, ADA, file("lab"), Provenance()) is None


@pytest.mark.parametrize(
    ("user", "source", "why"),
    [
        (ROOT, Provenance(), "it is not for jobs of root"),
        (ADA, Provenance(outsider=True), UNTRUSTED),
        (HUBRIS, Provenance(), "it is for jobs of refs/heads/main, and this one is of no ref"),
        (HUBRIS, OTHER, "it is for jobs of refs/heads/main, and this one is of refs/pull/7"),
        (HUBRIS, replace(MAIN, outsider=True), UNTRUSTED),
    ],
)
def test_who_may_not(user: User, source: Provenance, why: str) -> None:
    found = check_environment(GUARDED, user, ASKS, source)
    assert isinstance(found, Refused)
    assert (found.status, found.code) == (403, "environment-not-allowed")
    assert found.detail == f"the job may not ask for the environment 'production': {why}"


def test_an_environment_that_is_not_there_is_named() -> None:
    found = check_names(GUARDED, replace(ASKS, environment="prod"))
    assert isinstance(found, Refused)
    assert found.detail == "there is no environment 'prod'; there are: production"
    none = check_names(SITE, ASKS)
    assert isinstance(none, Refused)
    assert (none.code, none.detail) == ("unknown-environment", "there is no environment 'production'; there are: none")


def test_a_site_that_has_nothing_says_so() -> None:
    found = check_names(Site(), file())
    assert isinstance(found, Refused)
    assert found.detail == "there is no target 'linux'; there are: none"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (file("alias"), "target alias needs the privilege 'target.alias'"),
        (file("lab", "secret"), "target lab needs the privilege 'target.lab'"),
        (file("linux", "secret"), "resource type secret needs the privilege 'target.lab'"),
    ],
)
def test_who_may_not_is_told_what_is_missing(asked: JobFile, said: str) -> None:
    """SEC-2: nobody acts without the privilege."""
    assert look(asked, ADA) == (403, "privilege-missing", said)


def test_a_privilege_is_named_once() -> None:
    asked = file("alias", "secret")
    found = privileges(SITE, asked, needs(asked))
    assert found == {"target.alias": "target alias", "target.lab": "target lab"}


def test_options_are_for_the_well_to_judge() -> None:
    asked = JobFile("job.sh", "", target="linux", resources=(ResourceAsk("b", "bench", {"speed": 1}),))
    refused = check_satisfiable(SITE, ADA, asked, needs(asked), nothing_against)
    assert refused
    assert (refused.code, refused.detail) == ("bad-options", "well locks does not take these options of b")
    assert [(fault.message, fault.where) for fault in refused.faults] == [
        ("lock knows no speed", "resources.b.options")
    ]


def test_a_well_judges_by_its_settings_and_those_of_the_type() -> None:
    seen = []
    site = replace(
        SITE,
        wells={"locks": replace(SITE.wells["locks"], settings={"of": "well"})},
        resources={**SITE.resources, "bench": replace(SITE.resources["bench"], settings={"of": "type"})},
    )
    asked = JobFile("job.sh", "", target="linux", resources=(ResourceAsk("b", "bench", {"speed": 1}),))

    def judge(*told: object) -> Sequence[str]:
        seen.append(told)
        return ()

    assert check_satisfiable(site, ADA, asked, needs(asked), judge) is None
    assert seen == [("well", "lock", {"speed": 1}, {"of": "well"}, {"of": "type"})]


def test_a_factory_judges_what_a_job_says_of_its_worker_key_by_key() -> None:
    seen = []
    asked = JobFile("job.sh", "", target="linux", image="python", spots={"image": (3, 4)})
    wanted = replace(needs(asked)[-1], options={**asked.worker_options, "more": 1})

    def judge(*told: object) -> Sequence[str]:
        seen.append(told)
        return ["not here"]

    refused = check_satisfiable(SITE, ADA, asked, [wanted], judge)
    assert seen == [("factory", "boxes", each, {"of": "factory"}, {}) for each in ({"image": "python"}, {"more": 1})]
    assert refused
    assert (refused.status, refused.detail) == (422, "target linux does not let a job choose this")
    assert [(fault.where, fault.line, fault.file) for fault in refused.faults] == [
        ("image", 3, "job.sh"),
        ("more", None, None),
    ]
    assert check_satisfiable(SITE, ADA, asked, [wanted], lambda *_: []) is None


@pytest.mark.parametrize("spot", [None, (3, 7)])
def test_options_that_stand_in_the_file_are_told_by_line(spot: tuple[int, int] | None) -> None:
    asks = (ResourceAsk("a", "bench", {}, (1, 1)), ResourceAsk("b", "bench", {"speed": 1, "size": 2}, spot))
    asked = JobFile("job.sh", "", target="linux", resources=asks)
    refused = check_satisfiable(SITE, ADA, asked, needs(asked), nothing_against)
    assert refused
    assert [(fault.file, fault.line, fault.column) for fault in refused.faults] == [
        ("job.sh", *spot) if spot else (None, None, None)
    ] * 2


def test_a_unit_that_no_commit_can_grant_is_refused() -> None:
    hall = Need(1, 1, "hall", "bench", "resource/bench", "locks", uses={"resource/many": 38, "quota/vcpus": 8})
    refused = check_satisfiable(SITE, ROOT, file("linux", "bench"), [hall, *needs(file())], nothing_against)
    assert refused
    assert [(fault.where, fault.hint) for fault in refused.faults] == [("resources", "ask for less")]
    fits = Need(1, 1, "hall", "bench", "resource/bench", "locks", uses={"resource/many": 37, "quota/vcpus": 8})
    assert check_satisfiable(SITE, ROOT, file("linux", "bench"), [fits, *needs(file())], nothing_against) is None


def test_the_rows_of_a_grant_are_counted() -> None:
    need = Need(1, 1, "it", "bench", "resource/bench", "locks", uses={"resource/many": 3, "quota/vcpus": 8})
    claims, leases_and_units, slots, amounts = 3, 2, 2 * (1 + 3), 2
    assert rows_of_grant([need], ["quota/vcpus"]) == WINDOW + 1 + claims + leases_and_units + slots + amounts
    assert rows_of_grant([need] * 2, ["quota/vcpus"]) == WINDOW + 1 + claims + 2 * (leases_and_units + slots + amounts)


GIMLET, WHOLE = Choice("board == gimlet"), Choice(exclusive=True)


@pytest.mark.parametrize(
    ("asks", "said"),
    [
        ([("rig", GIMLET), ("rig", GIMLET)], None),
        ([("rig", GIMLET), ("rig", None), ("rig", None)], None),
        ([("rig", WHOLE), ("rig", WHOLE)], None),
        (
            [("rig", Choice("board == sidecar"))],
            "no rig fits board == sidecar: there are r1, r2; their labels: board: gimlet; rack: 4",
        ),
        ([("bench", Choice("rack"))], "no bench fits rack: there are a, b"),
        ([("many", Choice("rack"))], "many has no named things among which a job could choose: ask for any of them"),
        (
            [("rig", GIMLET), ("rig", replace(GIMLET, exclusive=True))],
            "the job wants 2 of rig, and not enough of them fit all that it chooses: "
            "ask for fewer, or choose among more",
        ),
        ([("rig", WHOLE)] * 3, "the job wants 6 of rig and there are 4: it could never run"),
    ],
)
def test_a_choice_that_nothing_fits_is_refused(asks: list[tuple[str, Choice | None]], said: str | None) -> None:
    resources = tuple(ResourceAsk(f"{at}", kind, choice=choice) for at, (kind, choice) in enumerate(asks))
    found = look(JobFile("job.sh", "", target="linux", resources=resources))
    assert (found[2] if found else None) == said
