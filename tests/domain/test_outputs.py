"""An output is being uploaded until it is committed."""

from penstock.domain.artifacts.outputs import Output, commit
from tests.domain.helpers import NOW

UPLOADING = Output(id="O1", artifact="A1", job="J1", attempt=1, path="/work/a b", size=1, sha256="00", time=NOW)


def test_an_upload_is_none_until_it_is_committed() -> None:
    assert not UPLOADING.is_committed
    assert commit(UPLOADING).is_committed
    assert UPLOADING.deadline is None


def test_committing_twice_is_committing_once() -> None:
    assert commit(commit(UPLOADING)) == commit(UPLOADING)
