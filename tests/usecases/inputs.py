"""Jobs with inputs."""

from __future__ import annotations

import hashlib

from penstock.domain.commands import AgentFile, NewInput
from penstock.domain.jobs.jobs import Result
from penstock.domain.replies import InputDownload, InputUpload
from penstock.kernel import limits
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import inputs, outputs
from penstock.usecases.workers.agents import Caller
from tests.usecases.steps import finish, hello, job_of


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def keep(twin: Twin, who: Caller, *paths: str) -> None:
    """Have a job's agent send files, in which their paths stand."""
    files = [AgentFile(path, size=len(path.encode()), sha256=digest(path.encode())) for path in paths]
    for start in range(0, len(files), limits.OUTPUTS_PER_CALL):
        part = files[start : start + limits.OUTPUTS_PER_CALL]
        for upload in outputs.begin(twin.on, who.job, part).uploads:
            twin.objects.objects[upload.url.removeprefix("memory://")] = upload.path.encode()
            outputs.commit(twin.on, who.job, [upload.id])


def run(twin: Twin, job: str, *paths: str, result: Result = Result.SUCCEEDED) -> None:
    twin.run()
    keep(twin, hello(twin, job), *paths)
    finish(twin, job, result)


def all_inputs(twin: Twin, job: str) -> list[InputDownload]:
    """What an agent gets that asks page by page."""
    found, after = [], ""
    while True:
        page = inputs.list_for_agent(twin.on, job_of(twin, job), after)
        found += page.inputs
        if page.next is None:
            return found
        after = page.next


def send(twin: Twin, job: str, name: str, data: bytes, *, arrives: bool = True) -> InputUpload:
    """Send a file with a job, or only begin to."""
    leave = inputs.begin(twin.on, job_of(twin, job), NewInput(name, size=len(data), sha256=digest(data)))
    if arrives:
        twin.objects.objects[leave.url.removeprefix("memory://")] = data
        inputs.commit(twin.on, job_of(twin, job), name)
    return leave
