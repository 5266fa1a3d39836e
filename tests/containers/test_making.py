"""What a container is, and that there is one for each worker. [SEC-1] [SEC-2] [UNIT-1]"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock import agentfile
from penstock.domain.units.units import CleanProof
from penstock.drivers import Registry
from penstock.drivers.factories.container import containers
from penstock.drivers.factories.container.spec import AGENT, CLOUD, CONFIG, RELAY
from penstock.drivers.factories.container.streams import pull
from penstock.kernel.errors import Misconfigured, NoCapacity, Unknown, Unsatisfiable
from penstock.ports import NotYet, Ready
from tests.containers.fake import Box
from tests.containers.helpers import IMAGE, KEY, NOW, SETTINGS, WORKER, Place, order

LOCAL = "http://127.0.0.1:4566"


def made(place: Place, url: str = "https://penstock.example", **more: Any) -> Box:
    assert isinstance(place.factory(**more).create(order(url=url)), Ready)
    (box,) = place.engine.boxes.values()
    return box


def test_a_container_has_few_rights_and_bounds(place: Place) -> None:
    """SEC-2: each of these lines takes something from a job."""
    box = made(place, cpus=0.5, memory=100, pids=50, tmp=10)
    host = box.spec["HostConfig"]
    assert (box.name, box.spec["Image"], box.state) == (WORKER, IMAGE, "running")
    assert (host["NanoCpus"], host["PidsLimit"]) == (500_000_000, 50)
    assert (host["Memory"], host["MemorySwap"]) == (100 << 20, 100 << 20)
    assert (host["Privileged"], host["CapDrop"], host["SecurityOpt"]) == (False, ["ALL"], ["no-new-privileges"])
    assert set(host["CapAdd"]) == {"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"}
    assert (host["RestartPolicy"], host["Init"]) == ({"Name": "no"}, True)
    assert host["Tmpfs"] == {"/tmp": "rw,exec,nosuid,nodev,mode=1777,size=10m"}
    assert host["LogConfig"]["Config"] == {"max-size": "1m"}


def test_an_engine_that_bounds_no_memory_starts_no_container(place: Place) -> None:
    """Nor does it one that was made before; but that can be destroyed."""
    place.engine.bounds_memory = False
    for _ in range(2):
        with pytest.raises(Misconfigured, match="bounds no memory: run it as root, or on a machine with cgroups v2"):
            place.factory().create(order())
    (box,) = place.engine.boxes.values()
    assert box.state == "created"
    assert isinstance(place.factory().destroy(WORKER, NOW), CleanProof)


def test_the_agent_is_mounted_read_only_and_is_the_entry(place: Place) -> None:
    box = made(place)
    (mount,) = box.spec["HostConfig"]["Mounts"]
    assert (mount["Type"], mount["Target"], mount["ReadOnly"]) == ("bind", AGENT, True)
    assert Path(mount["Source"]).read_bytes() == agentfile.build()
    assert Path(mount["Source"]).stat().st_mode & 0o777 == 0o644
    assert box.spec["Entrypoint"] == ["python3", AGENT, "run", "--config", CONFIG]
    assert box.spec["Cmd"] == []


def test_the_key_is_in_a_file_for_root_and_nowhere_else(place: Place) -> None:
    """SEC-1: whoever may list containers sees labels, environment and mounts."""
    box = made(place)
    mode, text = box.files[CONFIG]
    assert (mode, json.loads(text)) == (
        0o600, {"url": "https://penstock.example", "worker": WORKER, "key": KEY, "alone": True},
    )  # fmt: skip
    assert box.files["/opt/penstock"][0] == 0o700
    assert KEY not in json.dumps(box.spec)
    assert not any(KEY in call for call in place.engine.calls)
    assert all(KEY.encode() not in path.read_bytes() for path in place.home.rglob("*") if path.is_file())


def test_the_local_cloud_is_reached_through_its_socket(place: Place) -> None:
    box = made(place, LOCAL)
    assert box.spec["Entrypoint"][:4] == ["python3", RELAY, "4566", CLOUD]
    assert box.spec["Entrypoint"][4:] == ["python3", AGENT, "run", "--config", CONFIG]
    cloud = box.spec["HostConfig"]["Mounts"][1]
    assert (cloud["Source"], cloud["Target"], cloud["ReadOnly"]) == (str(place.home / "api.sock"), CLOUD, True)


def test_without_the_socket_it_is_said(place: Place) -> None:
    (place.home / "api.sock").unlink()
    with pytest.raises(Misconfigured, match=r"the local cloud has no socket .*api\.sock: start it again"):
        place.factory().create(order(url=LOCAL))
    assert place.engine.boxes == {}


@pytest.mark.parametrize(("oldest", "spoken"), [("1.24", "v1.41"), ("1.44", "v1.44"), ("2.0", "v2.0"), ("", "v1.41")])
def test_it_speaks_a_version_that_the_engine_still_speaks(place: Place, oldest: str, spoken: str) -> None:
    """Docker 29 refuses what is older than 1.44."""
    place.engine.oldest = oldest
    made(place)
    assert place.engine.versions == {spoken}


def test_a_network_that_there_is_not_is_reported(place: Place) -> None:
    """Docker notices it at the start only."""
    for _ in range(2):
        with pytest.raises(Misconfigured, match="network nowhere not found"):
            place.factory(network="nowhere").create(order())


def test_a_container_that_is_removed_before_its_start_is_asked_for_again(place: Place) -> None:
    driver = place.factory()
    place.engine.on_archive = place.engine.boxes.clear
    assert isinstance(driver.create(order()), NotYet)
    assert isinstance(driver.create(order()), Ready)


def test_an_image_that_is_missing_is_pulled_by_its_digest(place: Place) -> None:
    place.engine.images.clear()
    place.engine.registry.add(IMAGE)
    assert made(place).spec["Image"] == IMAGE
    assert place.engine.calls.count("POST /images/create") == 1


def test_a_pull_that_takes_long_goes_on_later(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.engine.images.clear()
    place.engine.registry.add(IMAGE)
    place.engine.fail("POST /images/create", way="slow")
    monkeypatch.setattr(containers, "pull", lambda engine, image: pull(engine, image, 0.2))
    first = place.factory().create(order())
    assert isinstance(first, NotYet)
    assert first.reason == "its image is being pulled"
    assert isinstance(place.factory().create(order()), Ready)


def test_an_image_that_there_is_not_is_reported(place: Place) -> None:
    """The engine says so in the midst of an answer whose status was 200."""
    place.engine.images.clear()
    with pytest.raises(Misconfigured, match="manifest unknown"):
        place.factory().create(order())


def test_a_container_that_was_not_started_is_started_and_that_once(place: Place) -> None:
    place.engine.fail("POST /containers/0", 500, "the daemon is busy")
    with pytest.raises(Unknown, match="the daemon is busy"):
        place.factory().create(order())
    for _ in range(2):
        assert isinstance(place.factory().create(order()), Ready)
    (box,) = place.engine.boxes.values()
    assert (box.state, box.starts) == ("running", 1)


def test_an_answer_that_is_lost_makes_no_second_container(place: Place) -> None:
    place.engine.fail("POST /containers/create", way="after")
    assert isinstance(place.factory().create(order()), Ready)
    assert len(place.engine.boxes) == 1


def test_a_container_that_has_ended_is_not_started_again(place: Place) -> None:
    """JOB-2: its agent may have run the job."""
    box = made(place)
    box.state = "exited"
    assert isinstance(place.factory().create(order()), Ready)
    assert (box.state, box.starts) == ("exited", 1)


def test_a_container_that_is_being_removed_is_waited_for(place: Place) -> None:
    made(place).state = "removing"
    assert isinstance(place.factory().create(order()), NotYet)


def test_a_container_of_somebody_elses_is_left_alone(place: Place) -> None:
    """UNIT-1: nothing untagged is touched."""
    box = made(place)
    box.spec["Labels"] = {"owner": "ada"}
    place.engine.networks.clear()
    for call in (lambda: place.factory().create(order()), lambda: place.factory().destroy(WORKER, NOW)):
        with pytest.raises(Misconfigured, match="that this factory did not make"):
            call()
    assert box.id in place.engine.boxes
    assert list(place.factory().list()) == []


def test_factories_and_local_clouds_do_not_see_each_others_containers(place: Place) -> None:
    """UNIT-1: one engine may serve several."""
    made(place)
    assert list(place.factory().list()) == [WORKER]
    assert list(place.factory(name="others").list()) == []
    place.home = place.folder / "elsewhere"
    assert list(place.factory().list()) == []


def test_a_home_that_cannot_be_written_is_reported(place: Place) -> None:
    driver = place.factory()
    place.home.rename(place.folder / "gone")
    with pytest.raises(Misconfigured, match="the agent's file cannot be written"):
        driver.create(order())


def test_a_full_machine_is_a_shortage(place: Place) -> None:
    place.engine.fail("POST /containers/create", 500, "write /var/lib: no space left on device")
    with pytest.raises(NoCapacity, match="no space left"):
        place.factory().create(order())


def test_it_works_in_the_local_cloud_only() -> None:
    with pytest.raises(Misconfigured, match="works only where Penstock runs on the engine's machine"):
        Registry({"PENSTOCK_SITE": "Penstock.eu-west-1"}).factory("container", SETTINGS, "boxes")


OTHER = f"docker.io/library/rust@sha256:{'cd' * 32}"
DENIED = f"docker.io/acme/rust@sha256:{'cd' * 32}"
ALLOWED = [
    (["docker.io/library/rust"], OTHER, True),
    (["docker.io/library/*"], OTHER, True),
    ([OTHER], OTHER, True),
    ([], OTHER, False),
    (["docker.io/library/*"], DENIED, False),
    (["docker.io/library"], OTHER, False),
    ([OTHER], OTHER.replace("cd", "ce"), False),
    (["docker.io/library/*"], "docker.io/library/rust:latest", False),
    (["docker.io/library/*"], "docker.io/library/../acme/rust@sha256:" + "cd" * 32, False),
]


@pytest.mark.parametrize(("images", "image", "is_allowed"), ALLOWED)
def test_a_job_names_an_image_that_the_site_allows(
    place: Place, images: list[str], image: str, is_allowed: bool
) -> None:
    """SEC-2: it is checked when the job is accepted, and again when the container is made, as the site may change."""
    place.engine.images.add(image)
    asked, settings = {"image": image}, {**SETTINGS, "images": images}
    assert (not Registry({}).objections("factory", "container", asked, settings)) is is_allowed
    driver = place.factory(images=images)
    if is_allowed:
        done = driver.create(replace(order(), options=asked))
        assert isinstance(done, Ready)
        assert (done.metadata["image"], next(iter(place.engine.boxes.values())).spec["Image"]) == (image, image)
    else:
        with pytest.raises(
            Unsatisfiable, match=r"the site does not let jobs name the image|jobs may not name images there"
        ):
            driver.create(replace(order(), options=asked))
        assert place.engine.boxes == {}


def test_an_image_that_a_job_names_is_pulled(place: Place) -> None:
    place.engine.registry.add(OTHER)
    driver = place.factory(images=["docker.io/library/*"])
    assert isinstance(driver.create(replace(order(), options={"image": OTHER})), Ready)
    assert place.engine.images == {IMAGE, OTHER}
