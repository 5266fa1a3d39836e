"""What ties a job to other jobs, to repositories and to published files."""

from dataclasses import dataclass

from penstock.domain.jobfile.checks import entries, listed, matching, record, text, wanted
from penstock.domain.jobfile.place import Place

__all__ = [
    "Dependency",
    "Publish",
    "check_access_repos",
    "check_dependencies",
    "check_publish",
    "check_toolchain",
]

# buildomat's limit on dependencies; its files never had more than 14 `publish` tables.
DEPENDENCIES = 8
PUBLISHES = 100
REPOSITORIES = 100


@dataclass(frozen=True)
class Dependency:
    """The outputs of `job` appear below /input/`name`."""

    name: str
    job: str


@dataclass(frozen=True)
class Publish:
    """The output with the exact path `from_output` becomes public as `name` of a `series`."""

    from_output: str
    series: str
    name: str


_dependency = record({"job": text}, {}, '[dependencies.build] with job = "name of the other job"')
_output = matching("/.*", "an absolute path", "the exact path of an output, like /work/image.tar.gz")
_publish = record(
    {"from_output": _output, "series": text, "name": text},
    {},
    '[[publish]] with from_output = "/work/a.tar", series = "image", name = "a.tar"',
)
_repository = matching("[0-9A-Za-z._-]+/[0-9A-Za-z._-]+", "a repository", 'like "owner/name"')


def check_dependencies(value: object, place: Place) -> tuple[Dependency, ...]:
    found = []
    for name, settings in entries(value, place, DEPENDENCIES, "tables like [dependencies.build]"):
        here = place / name
        text(name, here)
        if "/" in name:
            here.fault(f"{here.label}: no `/` in a dependency's name", "it names a folder of /input", on_key=True)
        found.append(Dependency(name, _dependency(settings, here).get("job", "")))
    return tuple(found)


def check_publish(value: object, place: Place) -> tuple[Publish, ...]:
    tables = listed(_publish, PUBLISHES, "[[publish]] tables")(value, place)
    return tuple(Publish(**{"from_output": "", "series": "", "name": "", **table}) for table in tables)


def check_toolchain(value: object, place: Place) -> bool | str:
    """A channel, or true for the one the repository names, or false for none."""
    if isinstance(value, bool | str):
        return value if isinstance(value, bool) else text(value, place)
    wanted('true, false or a channel like "stable"', value, place)
    return False


check_access_repos = listed(_repository, REPOSITORIES, "repositories")
