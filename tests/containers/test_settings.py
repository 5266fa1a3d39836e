"""What a site may say, and what it is told about the rest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from penstock.drivers.factories.container import settings as container_settings
from penstock.kernel.errors import Misconfigured
from tests.containers.helpers import IMAGE, SETTINGS

DIGEST = "ab" * 32
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"image": "python:3.13"}, "does not name an image by its digest.*sha256"),
    ({"image": "python"}, "by its digest"),
    ({"image": f"python:3.13@sha256:{DIGEST}"}, "by its digest"),
    ({"image": f"python@sha256:{DIGEST[:-1]}"}, "by its digest"),
    ({"image": f"../x@sha256:{DIGEST}"}, "by its digest"),
    ({"image": 1}, "wants an image by its digest"),
    ({"socket": "tcp://127.0.0.1:2375"}, "path of a unix socket"),
    ({"cpus": 0}, "cpus"),
    ({"cpus": True}, "wants a number of CPUs"),
    ({"memory": 1}, "memory"),
    ({"pids": 0}, "pids"),
    ({"tmp": 0}, "tmp"),
    ({"network": "host"}, "jobs may not have the network `host`"),
    ({"network": "container:db"}, "jobs may not have the network"),
    ({"network": "bridge"}, "jobs may not have the network"),
    ({"network": "a b"}, "name of a network"),
    ({"privileged": True}, "privileged"),
    ({"images": "docker.io/library/rust"}, "a list of images"),
    ({"images": ["Docker.io/rust"]}, "is not a name of images"),
    ({"images": ["*"]}, "is not a name of images"),
    ({"images": [f"python@sha256:{DIGEST[1:]}"]}, "does not name an image by its digest"),
    ({"images": [1]}, "a string|a name of images"),
]


@pytest.mark.parametrize(("more", "words"), WRONG, ids=[words for _, words in WRONG])
def test_what_is_wrong_is_told(more: dict[str, Any], words: str) -> None:
    found = container_settings.complaints({**SETTINGS, **more})
    assert any(re.search(words, complaint) for complaint in found), found
    with pytest.raises(Misconfigured):
        container_settings.read({**SETTINGS, **more})


def test_an_image_is_needed() -> None:
    assert any("image" in each for each in container_settings.complaints({}))


@pytest.mark.parametrize("image", [IMAGE, f"python@sha256:{DIGEST}", f"localhost/a/b_c@sha256:{DIGEST}"])
def test_what_is_good_is_taken(image: str) -> None:
    images = ["python", "docker.io/library/*", "localhost:5000/a", image]
    good = {"image": image, "images": images, "cpus": 2, "network": "ci", "socket": "/run/podman/podman.sock"}
    assert container_settings.complaints(good) == []
    assert container_settings.read(good).cpus == 2.0


def test_the_socket_is_that_of_the_users_podman_else_dockers(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = container_settings.read(SETTINGS)
    monkeypatch.setattr(Path, "exists", lambda path: path.name == "podman.sock")
    assert container_settings.socket_of(plain).startswith("/run/user/")
    monkeypatch.setattr(Path, "exists", lambda path: False)
    assert container_settings.socket_of(plain) == "/var/run/docker.sock"
    assert container_settings.socket_of(container_settings.read({**SETTINGS, "socket": "/x"})) == "/x"
