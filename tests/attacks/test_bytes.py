"""What an attacker tried so that a name, a digest or an ETag stands for other bytes. [ART-1]"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.agent.downloads import NotFetched, verify_file
from penstock.domain.artifacts.volumes import composite
from tests.functions.service import SITE, Service, refused, token_of
from tests.functions.stage import BYTES, DIGEST, Stage

EVIL = b"not what the job made"
AS = {"series": "nightly", "version": "v1", "name": "x.bin"}
FILE = "ada/nightly/v1/x.bin"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def in_parts(data: bytes) -> str:
    """The composite of a file of one part."""
    return composite([sha256(data)])


class Job:
    """A job of Ada's that runs, and whose worker's token the attacker has."""

    def __init__(self, service: Service) -> None:
        self.stage = Stage(service)
        self.objects = service.twin.objects

    def agent(self, what: str, body: Any) -> Any:
        return self.stage.agent(f"/v1/agent/jobs/{self.stage.job}/{what}", body)

    def name(self, path: str, size: int, sha256: str, composite: str = "") -> Mapping[str, Any]:
        """Announce an output, and say where it is uploaded."""
        file = {"path": path, "size": size, "sha256": sha256, "composite": composite}
        told: Mapping[str, Any] = self.agent("outputs", {"files": [file]}).json["uploads"][0]
        return told

    def store(self, id: str, data: bytes) -> None:
        """Have bytes in storage, as if it did not look at digests."""
        self.objects.objects[f"artifacts/{id}"] = data

    def send_part(self, id: str, data: bytes) -> None:
        """Upload the only part of an output with a presigned URL, which covers the digest that the attacker names."""
        told = self.agent("outputs/parts", {"id": id, "first": 1, "sha256": [sha256(data)]}).json["parts"][0]
        name, _, number = told["url"].removeprefix("memory://").partition("#")
        self.objects.begun[name][int(number)] = data

    def keep(self, path: str, data: bytes, *, announced: str = "", parts: bool = False) -> str:
        """Have an output kept; its announced SHA-256 may be another."""
        digests = (announced or sha256(data), in_parts(data) if parts else "")
        id = str(self.name(path, len(data), *digests)["id"])
        self.send_part(id, data) if parts else self.store(id, data)
        assert self.commit(id).status == 200
        return id

    def commit(self, id: str) -> Any:
        return self.agent("outputs/commit", {"ids": [id]})

    def publish(self, id: str) -> Any:
        self.stage.end()
        return self.stage.service.ask("POST", f"/v1/jobs/{self.stage.job}/outputs/{id}/publish", AS)


@pytest.fixture
def job(service: Service) -> Job:
    return Job(service)


def look(service: Service) -> Mapping[str, str]:
    return service.ask("HEAD", f"/v1/public/file/{FILE}", as_=None).headers


def test_other_bytes_under_a_withdrawn_name_with_its_old_digest(job: Job, service: Service) -> None:
    """Publish, withdraw, announce the old SHA-256 with a composite of other bytes, send these as a part, publish."""
    good = job.keep("/work/good", EVIL[::-1])
    evil = job.keep("/work/evil", EVIL, announced=sha256(EVIL[::-1]), parts=True)
    assert job.publish(good).status == 201
    etag = look(service)["etag"]
    assert service.ask("DELETE", f"/v1/published/{FILE}").status == 200
    refused(job.publish(evil), 409, "published-otherwise")
    assert job.publish(good).status == 201
    assert look(service)["etag"] == etag == f'"{sha256(EVIL[::-1])}"'


def test_a_digest_that_nobody_verified_is_shown_nowhere(job: Job, service: Service) -> None:
    evil = job.keep("/work/evil", EVIL, announced=DIGEST, parts=True)
    listed = service.ask("GET", f"/v1/jobs/{job.stage.job}/outputs").json["items"]
    (shown,) = (each for each in listed if each["id"] == evil)
    assert (shown["sha256"], shown["composite"]) == (None, in_parts(EVIL))
    artifact = service.ask("GET", f"/v1/artifacts/{evil}").json
    assert (artifact["sha256"], artifact["composite"]) == (None, in_parts(EVIL))
    published = job.publish(evil).json
    assert (published["sha256"], published["composite"]) == (None, in_parts(EVIL))
    assert look(service)["etag"] == f'"{in_parts(EVIL)}-parts"'
    assert DIGEST not in str(service.ask("POST", f"/v1/published/{FILE}/sign").json)


def test_a_composite_that_is_the_digest_of_another_file(job: Job, service: Service) -> None:
    """The digest of one part is a file of 32 bytes, whose SHA-256 is the composite. They are told apart."""
    preimage = hashlib.sha256(EVIL).digest()
    first = job.keep("/work/preimage", preimage)
    second = job.keep("/work/evil", EVIL, parts=True)
    assert sha256(preimage) == in_parts(EVIL)
    assert job.publish(first).status == 201
    etag = look(service)["etag"]
    refused(job.publish(second), 409, "published-otherwise")
    assert etag != f'"{in_parts(EVIL)}-parts"'


def test_other_bytes_of_the_announced_size(job: Job) -> None:
    """Whatever storage took: what its own digest does not confirm gets no name."""
    id = str(job.name("/work/a", len(EVIL), sha256(EVIL[::-1]))["id"])
    job.store(id, EVIL)
    told = refused(job.commit(id), 409, "output-differs")
    assert sha256(EVIL) in told["detail"]
    assert sha256(EVIL[::-1]) in told["detail"]
    assert id not in str(job.stage.service.ask("GET", f"/v1/jobs/{job.stage.job}/outputs").json)


def test_a_whole_object_where_parts_were_announced(job: Job) -> None:
    """Announce one file twice, with and without a composite, to upload it whole under the composite of another."""
    whole = job.name("/work/a", len(BYTES), DIGEST)
    parts = job.name("/work/a", len(BYTES), DIGEST, in_parts(EVIL))
    assert (whole["url"] != "", parts["url"]) == (True, "")
    assert whole["id"] != parts["id"]
    job.store(parts["id"], BYTES)
    refused(job.commit(parts["id"]), 409, "output-differs")


def test_parts_of_an_upload_that_is_over(job: Job) -> None:
    """A new upload of an object that has a name is not begun, so none can be completed."""
    id = job.keep("/work/a", EVIL, parts=True)
    again = {"id": id, "first": 1, "sha256": [DIGEST]}
    refused(job.agent("outputs/parts", again), 409, "upload-over")
    assert not job.objects.begun


@pytest.mark.parametrize("part_bytes", [1, 3, 7, len(BYTES), 100])
def test_a_download_in_parts_of_other_bytes(tmp_path: Path, part_bytes: int) -> None:
    """An agent computes the composite of what it got, and believes no SHA-256 beside it."""
    file, parts = tmp_path / "file", [BYTES[at : at + part_bytes] for at in range(0, len(BYTES), part_bytes)]
    said = {"size": len(BYTES), "sha256": DIGEST, "part_bytes": part_bytes, "path": "/input/x"}
    with file.open("w+b") as stream:
        stream.write(BYTES)
        verify_file({**said, "composite": composite([sha256(each) for each in parts])}, stream)
        with pytest.raises(NotFetched, match="expected were 17 bytes with composite SHA-256"):
            verify_file({**said, "composite": in_parts(EVIL)}, stream)


def test_an_input_of_other_bytes(service: Service) -> None:
    stage = Stage(service)
    path = f"/v1/jobs/{stage.given}/inputs"
    url = service.ask("POST", path, {"name": "data", "size": len(BYTES), "sha256": DIGEST}).json["url"]
    service.twin.objects.objects[url.removeprefix("memory://")] = BYTES[::-1]
    refused(service.ask("POST", f"{path}/commit", {"name": "data"}), 409, "input-differs")
    assert service.ask("GET", path).json["items"][0]["there"] is False


def test_an_archive_of_other_bytes(service: Service) -> None:
    stage = Stage(service)
    id = stage.save("new")
    service.twin.objects.objects[f"artifacts/{id}"] = BYTES[::-1]
    refused(stage.agent(f"/v1/agent/jobs/{stage.job}/caches/commit", stage.archived("new")), 409, "cache-differs")


def test_more_bytes_than_an_owner_may_keep(service: Service) -> None:
    """By many files, by one, and by inputs; others keep what they have, and upload as before."""
    limited = f"{SITE}\n[limits]\nstored_bytes = 100\n"
    assert service.ask("PUT", "/v1/config", {"toml": limited}, token=token_of("root")).status == 200
    job = Job(service)
    assert job.name("/work/a", 60 - len(BYTES), sha256(b""))
    answer = job.agent("outputs", {"files": [{"path": "/work/b", "size": 50, "sha256": DIGEST, "composite": ""}]})
    refused(answer, 413, "too-many-bytes")
    assert "limits.stored_bytes" in answer.json["detail"]
    refused(
        service.ask("POST", f"/v1/jobs/{job.stage.given}/inputs", {"name": "data", "size": 50, "sha256": DIGEST}),
        413,
        "too-many-bytes",
    )
    assert job.name("/work/b", 40, sha256(b""))
    refused(service.ask("POST", "/v1/jobs", {"script": "#!/bin/sh\n", "target": "linux"}), 429, "too-many-bytes")
    assert service.ask("POST", "/v1/jobs", {"script": "#!/bin/sh\n", "target": "linux"}, as_="bob").status == 201
