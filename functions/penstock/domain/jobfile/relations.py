"""What ties a job to other jobs, to repositories and to published files."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.domain.dependencies import On
from penstock.domain.jobfile.matrix import REFERENCE
from penstock.kernel import limits
from penstock.toml.checks import Fault, Place, clip, entries, flag, listed, matching, record, text, wanted

__all__ = [
    "Dependency",
    "Publish",
    "check_access_repos",
    "check_asked",
    "check_dependencies",
    "check_folder",
    "check_inputs",
    "check_publish",
    "check_toolchain",
]

# buildomat's files never had more than 14 `publish` tables.
PUBLISHES = 100
REPOSITORIES = 100


@dataclass(frozen=True)
class Dependency:
    """A job before this one, by the name that its own file gives it; or, in a request, by its id.

    It is to end as `on` says. With `copy_outputs` its outputs appear below /input/`name`. `spot` is the line and column
    of `job` in the job file, if it stands in one.
    """

    name: str
    job: str
    on: On = On.SUCCESS
    copy_outputs: bool = True
    spot: tuple[int, int] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Publish:
    """The output with the exact path `from_output` is published as `name` of a `series`, when the job has succeeded.

    `version` is empty where the file says none: it is the commit then.
    """

    from_output: str
    series: str
    name: str
    version: str = ""


FOLDER_BYTES = 255


def _path(value: object, place: Place) -> str:
    """Whatever names an output; one that is not absolute matches none, and files that were written so still run."""
    return text(value, place, limits.OUTPUT_PATH_CHARS)


_part = matching(
    rf"(?!\.+\Z)(?:[0-9A-Za-z._-]|{REFERENCE.pattern}){{1,100}}",
    "a part of a published name",
    "it has 1 to 100 of A-Z a-z 0-9 . _ -",
)
_publish = record(
    {"from_output": _path, "series": _part, "name": _part},
    {"version": _part},
    '[[publish]] with from_output = "/work/a.tar", series = "image", name = "a.tar"',
)
_repository = matching("[0-9A-Za-z._-]+/[0-9A-Za-z._-]+", "a repository", 'like "owner/name"')


def _on(value: object, place: Place) -> On:
    found = text(value, place)
    if isinstance(value, str) and found not in list(On):
        place.fault(f"{place.label} cannot be `{clip(found)}`", f"there are: {', '.join(On)}")
        return On.SUCCESS
    return On(found) if found else On.SUCCESS


_dependency = record(
    {"job": text},
    {"on": _on, "copy_outputs": flag},
    '[dependencies.build] with job = "name of the other job"',
)


def check_dependencies(value: object, place: Place) -> tuple[Dependency, ...]:
    return _dependencies(value, place, deep=1)


def check_asked(value: object) -> tuple[tuple[Dependency, ...], tuple[Fault, ...]]:
    """The dependencies of a request. A name may be that of a file's dependency, `/`, and which of its jobs it is."""
    top = Place(("dependencies",))
    return _dependencies(value, top, deep=2), tuple(top.faults)


def _dependencies(value: object, place: Place, deep: int) -> tuple[Dependency, ...]:
    found = []
    for name, settings in entries(value, place, limits.DEPENDENCIES, "tables like [dependencies.build]"):
        here = place / name
        text(name, here)
        for part in name.split("/", deep - 1):
            check_folder(part, here, "a dependency's name")
        found.append(Dependency(**{"job": "", **_dependency(settings, here), "name": name}))
    return tuple(found)


def check_folder(name: str, place: Place, what: str) -> None:
    """A name that becomes that of an entry of /input."""
    if "/" in name:
        place.fault(f"{place.label}: no `/` in {what}", "it names a folder of /input", on_key=True)
    elif name in (".", "..") or len(name.encode("utf-8", "surrogatepass")) > FOLDER_BYTES:
        most = f"it has at most {FOLDER_BYTES} bytes, and is neither . nor .."
        place.fault(f"{place.label} cannot be {what}", most, on_key=True)


def check_inputs(names: Sequence[str], folders: Sequence[str]) -> tuple[Fault, ...]:
    """What is wrong with the names of files that are sent with a job; `folders` are those of its dependencies."""
    top = Place(("inputs",))
    if len(names) > limits.INPUTS:
        top.fault(f"`inputs` has {len(names)} entries; it may have at most {limits.INPUTS}")
    for at, name in enumerate(names[: limits.INPUTS]):
        here = top / at
        text(name, here)
        check_folder(name, here, "an input's name")
        if name in names[:at] or name in folders:
            here.fault(f"/input/{clip(name)} is there twice", "give one of them another name")
    return tuple(top.faults)


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
