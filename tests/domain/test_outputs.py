"""An output is being uploaded until it is committed."""

from penstock.domain.outputs import UPLOAD_WITHIN, Output, commit, expire
from tests.domain.helpers import NOW

UPLOADING = Output(
    id="O1", job="J1", attempt=1, path="/work/a b", size=1, sha256="00", time=NOW, due=NOW + UPLOAD_WITHIN
)


def test_an_upload_is_due_until_it_is_committed() -> None:
    assert not UPLOADING.is_committed
    assert UPLOADING.deadline == NOW + UPLOAD_WITHIN
    assert commit(UPLOADING).is_committed
    assert commit(UPLOADING).deadline is None


def test_committing_twice_is_committing_once() -> None:
    assert commit(commit(UPLOADING)) == commit(UPLOADING)


def test_the_object_is_named_by_ids_never_by_the_jobs_path() -> None:
    assert UPLOADING.object_name == "outputs/J1/O1"


def test_an_output_that_expires_stays_due_until_its_bytes_are_gone() -> None:
    gone = expire(UPLOADING)
    assert (gone.expired, gone.deadline, gone.is_committed) == (True, UPLOADING.due, False)
