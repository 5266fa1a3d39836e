"""Files of jobs: inputs that you upload, and outputs that a job produced."""

from __future__ import annotations

from typing import Annotated

from penstock.api.app import Caller, FilePage, Router
from penstock.api.readers import Reader
from penstock.api.shapes import NextPage, digests, view
from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.artifacts.content import Content
from penstock.domain.artifacts.inputs import Input
from penstock.domain.commands import InputParts, NewInput
from penstock.domain.jobs.jobs import Job
from penstock.domain.replies import COMPOSITE, InputUpload, PartUploads, SignedOutput
from penstock.domain.users.users import READ, SUBMIT
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases.artifacts import inputs, outputs
from penstock.usecases.jobs import jobs, readers

router = Router("files")


@dataclass(frozen=True)
class InputName:
    """An input that was uploaded."""

    name: Annotated[str, Bound(most=128), "The input's name."]


@dataclass(frozen=True)
class InputView:
    """A file that is uploaded with a job."""

    name: Annotated[str, "Its name below /input."]
    there: Annotated[bool, "Whether it was uploaded."]
    size: Annotated[int | None, "Its size in bytes; null until it was uploaded."]
    sha256: Annotated[str | None, "Its SHA-256 in hex; null until it was uploaded, and for a file in parts."]
    composite: Annotated[str | None, COMPOSITE]
    until: Annotated[str, "When it must be uploaded at the latest, as RFC 3339."]


@dataclass(frozen=True)
class InputList:
    """The inputs of a job."""

    items: Annotated[list[InputView], "The inputs."]


@dataclass(frozen=True)
class OutputView:
    """A file that a job produced."""

    id: Annotated[str, "Its id."]
    path: Annotated[str, "Its path in the job."]
    size: Annotated[int, "Its size in bytes."]
    sha256: Annotated[str | None, "Its SHA-256 in hex, as the store verified it; null for a file in parts."]
    composite: Annotated[str | None, COMPOSITE]
    time: Annotated[str, "When its upload began, as RFC 3339."]


@dataclass(frozen=True)
class OutputPage:
    """Some outputs of a job."""

    items: Annotated[list[OutputView], "The outputs."]
    next: NextPage


@dataclass(frozen=True)
class SignOutput:
    """A request for a URL to download a file."""

    expires_in: Annotated[int, Bound(least=1, most=3600), "For how many seconds the URL is valid."] = 3600


AN_HOUR = SignOutput()


@router.get("/v1/jobs/{job}/outputs", "List a job's outputs", READ)
def list_outputs(on: System, user: Reader, job: str, *, page: FilePage = "") -> OutputPage:
    found, after = outputs.list_outputs(on, readers.find(on, user, job).id, page)
    return OutputPage([show_output(row) for row in found], after)


@router.post("/v1/jobs/{job}/outputs/{output}/sign", "Get a URL to download an output", READ)
def sign_output(on: System, user: Reader, job: str, output: str, ask: SignOutput = AN_HOUR) -> SignedOutput:
    return outputs.sign(on, readers.find(on, user, job), output, ask.expires_in)


@router.get("/v1/jobs/{job}/inputs", "List a job's inputs", READ)
def list_inputs(on: System, user: Caller, job: str) -> InputList:
    return _inputs(on, jobs.find(on, user, job))


@router.post("/v1/jobs/{job}/inputs", "Get a URL to upload an input to", SUBMIT)
def send_input(on: System, user: Caller, job: str, ask: NewInput) -> InputUpload:
    return inputs.begin(on, jobs.find(on, user, job), ask)


@router.post("/v1/jobs/{job}/inputs/parts", "Get URLs to upload parts of an input to, at most 100 in one call", SUBMIT)
def send_parts(on: System, user: Caller, job: str, ask: InputParts) -> PartUploads:
    return inputs.sign_parts(on, jobs.find(on, user, job), ask)


@router.post("/v1/jobs/{job}/inputs/commit", "Confirm that an input was uploaded", SUBMIT)
def commit_input(on: System, user: Caller, job: str, ask: InputName) -> InputList:
    found = jobs.find(on, user, job)
    inputs.commit(on, found, ask.name)
    return _inputs(on, found)


def _inputs(on: System, job: Job) -> InputList:
    return InputList([show_input(row) for row in inputs.list_inputs(on, job)])


def show_input(row: Input) -> InputView:
    """A file that is uploaded with a job."""
    there = row.is_committed
    content = row.content if there else Content(0, "")
    return view(InputView, row, there=there, size=row.size if there else None, **digests(content))


def show_output(row: Artifact) -> OutputView:
    """A file that a job produced."""
    return view(OutputView, row, **digests(row.content))
