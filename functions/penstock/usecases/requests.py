"""The job file that a request amounts to: the one that it brings, with the request's own values over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from penstock.domain import limits, origins
from penstock.domain.commands import SubmitJob
from penstock.domain.errors import Fault, Refused
from penstock.domain.jobfile import JobFile, Problem, Problems, check_asked, check_inputs, check_key, parse, variant

CHECKED = (
    "name",
    "target",
    "resources",
    "output_rules",
    "tags",
    "env",
    "priority",
    "timeout",
    "retries",
    "hold_on_failure",
)
"""The values of a request that are checked as if they stood in the file."""


def file(ask: SubmitJob) -> JobFile:
    """The job file with the request's own values over it."""
    if not ask.path.isprintable():
        fault = Fault("path holds a character that cannot be printed", where="path", hint="rename the file")
        raise Refused(400, "bad-request", fault.message, [fault])
    path = ask.path[: limits.NAME_CHARS]
    found = parse(ask.script, path)
    if isinstance(found, Problems):
        too_big = len(ask.script.encode()) > limits.SCRIPT_BYTES
        code = (413, "script-too-big") if too_big else (400, "bad-job-file")
        raise Refused(*code, f"{path} is not a job file that can run", [_fault(item) for item in found.items])
    found = _without(ask, _of_matrix(ask, found))
    values = {name: getattr(ask, name) for name in CHECKED if getattr(ask, name) not in (None, [], {})}
    values |= _filled_in(found) if ask.matrix else {}
    checked: dict[str, Any] = {name: check_key(name, value) for name, value in values.items()}
    if ask.dependencies:
        values["dependencies"] = None
        checked["dependencies"] = check_asked(_depends(ask, found))
    checked["inputs"] = (
        None,
        check_inputs(ask.inputs or (), [*(ask.dependencies or {}), *(each.name for each in found.dependencies)]),
    )
    faults = [
        Fault(fault.message, where=fault.where, hint=fault.hint) for _, wrong in checked.values() for fault in wrong
    ]
    if faults:
        raise Refused(400, "bad-request", "some values of the request cannot be", faults)
    _refuse_disabled(found)
    return _merge(found, {name: checked[name][0] for name in values})


def _depends(ask: SubmitJob, file: JobFile) -> dict[str, Any]:
    """The dependencies that a request names jobs for. How they are to end is said there, or in the file."""
    said = {each.name: {"on": each.on.value, "copy_outputs": each.copy_outputs} for each in file.dependencies}
    return {
        name: {**said.get(name.partition("/")[0], {}), **given} if isinstance(given, dict) else given
        for name, given in (ask.dependencies or {}).items()
    }


def _of_matrix(ask: SubmitJob, file: JobFile) -> JobFile:
    """The one of a file's jobs that is asked for. Raises Refused 400 or 422."""
    if file.matrix is None and ask.matrix is None:
        return file
    axes = list(file.matrix.axes) if file.matrix else []
    if file.matrix is None or (ask.matrix is not None and ask.matrix not in file.matrix.combinations):
        why = f"{file.path} has no such combination" if file.matrix else f"{file.path} has no matrix"
        raise Refused(400, "bad-request", why, [Fault(why, where="matrix", hint=f"a value for each of {axes}")])
    if ask.matrix is None:
        why = f"{file.path} stands for {len(file.matrix.combinations)} jobs, and none of them is named"
        hint = "`penstock job run FILE` submits all of them; over HTTP, `matrix` says which"
        raise Refused(422, "matrix-without-values", why, [Fault(why, file=file.path, line=1, column=1, hint=hint)])
    return variant(file, ask.matrix)


def _without(ask: SubmitJob, file: JobFile) -> JobFile:
    """The file without the dependencies that its job is not to wait for. Raises Refused 400 for what it has not."""
    there = [each.name for each in file.dependencies]
    faults = [
        Fault(f"{file.path} has no dependency {name[:100]!r}", where="without", hint=f"it has: {', '.join(there)}")
        for name in ask.without or ()
        if name not in there
    ]
    if faults:
        raise Refused(400, "bad-request", "the job cannot go without what its file does not have", faults)
    left = tuple(each for each in file.dependencies if each.name not in (ask.without or ()))
    return replace(file, dependencies=left)


def _filled_in(file: JobFile) -> dict[str, Any]:
    """What values of a matrix were put into, to be checked once more."""
    return {"name": file.name, "target": file.target}


def refuse_unnamed(ask: SubmitJob, file: JobFile) -> None:
    """Raises Refused 422 for dependencies that are other files' names: only whoever submits all of them knows ids."""
    faults = []
    for each in file.dependencies:
        if each.name not in (ask.dependencies or {}):  # else it stands there, or all that it stands for
            line, column = each.spot or (1, 1)
            why = f"the dependency {each.name!r} is the job of another file, {each.job!r}, of which no job is named"
            hint = f"submit the folder: penstock job run DIR; or name its job: -d {each.name}=JOB"
            faults.append(Fault(why, file=file.path, line=line, column=column, hint=hint))
    if faults:
        raise Refused(422, "dependency-without-job", f"{file.path} depends on the jobs of other files", faults)


def refuse_homeless(file: JobFile, check: str) -> None:
    """Raises Refused 422 for a file that asks for what only a repository has, of a job that comes from none."""
    if file.access_repos and not check:
        why = "a job that is submitted by hand has no repository, whose token could read others"
        hint = "push it, and the front end for GitHub runs it; or take `access_repos` out"
        raise Refused(422, "no-repository", why, [Fault("`access_repos` names some", file=file.path, hint=hint)])
    if origins.toolchain(file) == origins.FILE and not check:
        hint = 'name the channel: rust_toolchain = "stable"'
        why = "no repository comes with a job that is submitted by hand, and so nothing that names a toolchain"
        raise Refused(422, "no-repository", why, [Fault("`rust_toolchain` is true", file=file.path, hint=hint)])


def _fault(problem: Problem) -> Fault:
    return Fault(problem.message, file=problem.file, line=problem.line, column=problem.column, hint=problem.hint)


def _refuse_disabled(file: JobFile) -> None:
    if not file.enable:
        raise Refused(
            422,
            "job-disabled",
            f"{file.path} says enable = false",
            [Fault("the job is disabled", file=file.path)],
        )


def _merge(file: JobFile, values: Mapping[str, Any]) -> JobFile:
    merged = dict(values)
    merged["tags"] = {**file.tags, **values.get("tags", {})}
    merged["env"] = {**file.env, **values.get("env", {})}
    if "dependencies" in values:
        given = {each.name.partition("/")[0] for each in values["dependencies"]}
        others = (each for each in file.dependencies if each.name not in given)
        merged["dependencies"] = (*values["dependencies"], *others)
    merged["output_rules"] = (*file.output_rules, *values.get("output_rules", ()))
    merged.setdefault("name", file.name or PurePosixPath(file.path).stem or "job")
    for key in ("tags", "env", "output_rules"):
        most = {"tags": limits.TAGS, "env": limits.ENV_ENTRIES, "output_rules": limits.OUTPUT_RULES}[key]
        if len(merged[key]) > most:
            raise Refused(400, "bad-request", f"there are more than {most} {key}")
    return replace(file, **merged)
