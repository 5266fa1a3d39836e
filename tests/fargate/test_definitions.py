"""Task definitions: what is in them, and that there are no more of them than are needed. [SEC-1] [SEC-2]"""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.drivers.factories.aws.tags import Tags
from penstock.drivers.factories.fargate import settings as fargate_settings
from penstock.drivers.factories.fargate.definition import DROPPED, Families, definition
from penstock.drivers.factories.fargate.launch import PRUNED
from penstock.kernel.errors import Unknown
from penstock.ports import Ready
from tests.fargate.fake import Ecs
from tests.fargate.helpers import FULL, HERE, IMAGE, MORE, OTHER, OWN, SETTINGS, WORKER, Desk, clean, factory, order
from tests.played import Refusal

TAGS = Tags(HERE, "tasks")


def made(image: str = IMAGE, **more: Any) -> dict[str, Any]:
    return definition(image, fargate_settings.read({**SETTINGS, **more}), Families.by(TAGS), TAGS)


def own(number: int) -> dict[str, Any]:
    """A job's options, with an image of its own."""
    return {"image": f"ghcr.io/acme/rust@sha256:{number:064x}"}


def test_a_task_has_no_role_and_no_rights_that_it_need_not_have() -> None:
    found = made()
    (container,) = found["containerDefinitions"]
    assert {"taskRoleArn", "executionRoleArn", "volumes", "pidMode", "ipcMode"} & set(found) == set()
    assert "privileged" not in container
    assert container["user"] == "0"
    assert container["linuxParameters"] == {"initProcessEnabled": True, "capabilities": {"drop": list(DROPPED)}}
    assert container["entryPoint"][:2] == ["python3", "-c"]
    assert "logConfiguration" not in container
    assert (found["cpu"], found["memory"]) == ("1024", "2048")
    assert found["runtimePlatform"] == {"cpuArchitecture": "X86_64", "operatingSystemFamily": "LINUX"}


def test_all_that_can_be_said() -> None:
    found = definition(IMAGE, fargate_settings.read(FULL), Families.by(TAGS), TAGS)
    (container,) = found["containerDefinitions"]
    assert (found["cpu"], found["memory"]) == ("256", "512")
    assert found["runtimePlatform"]["cpuArchitecture"] == "ARM64"
    assert found["executionRoleArn"] == FULL["execution_role"]
    assert found["ephemeralStorage"] == {"sizeInGiB": 200}
    assert container["entryPoint"][0] == "/usr/bin/python3.11"
    assert container["logConfiguration"]["options"] == {
        "awslogs-group": "/penstock/workers",
        "awslogs-region": "us-gov-east-1",
        "awslogs-stream-prefix": "penstock",
    }
    assert {"key": "team", "value": "tools"} in found["tags"]
    assert {"key": "penstock:site", "value": HERE} in found["tags"]


def test_the_same_content_has_the_same_name_and_any_other_another() -> None:
    assert made()["family"] == made(tags={"team": "tools"}, market="spot")["family"]
    changes: list[dict[str, Any]] = [{}, {"cpu": 2, "memory": 4096}, {"storage": 30}, {"arch": "arm64"}]
    names = [made(**each)["family"] for each in changes] + [made(OWN)["family"]]
    assert len(set(names)) == len(names)
    assert all(name.startswith("penstock_Penstock-eu-west-1_") for name in names)


def test_one_is_registered_once_for_all_workers(ecs: Ecs, desk: Desk) -> None:
    for worker in MORE:
        desk.create(worker)
    assert len(ecs.definitions) == 1
    assert [name for name, _ in ecs.calls].count("RegisterTaskDefinition") == 1


def test_the_second_of_two_that_register_at_once_only_tries_again(ecs: Ecs, desk: Desk, monkeypatch: Any) -> None:
    """ECS refuses it. Nothing of the site is wrong, and its next try finds what the other registered."""
    ecs.registers, describe = 60, ecs.DescribeTaskDefinition

    def overtaken(params: dict[str, Any]) -> dict[str, Any]:
        monkeypatch.setattr(ecs, "DescribeTaskDefinition", describe)
        desk.create(OTHER)
        raise Refusal("ClientException", "Unable to describe task definition.")

    monkeypatch.setattr(ecs, "DescribeTaskDefinition", overtaken)
    with pytest.raises(Unknown, match="Too many concurrent attempts"):
        desk.create()
    assert isinstance(desk.create(), Ready)
    assert ecs.made() == {OTHER: 1, WORKER: 1}
    assert list(ecs.revisions.values()) == [1]


def test_two_that_register_at_once_do_no_harm(ecs: Ecs, desk: Desk) -> None:
    """JOB-2: the request is the same, whichever revision there is, if ECS lets both register."""
    ecs.crashes["RunTask", "after"] = 1
    with pytest.raises(BaseException, match="RunTask"):
        desk.create()
    ecs.now += ecs.registers
    ecs.RegisterTaskDefinition(dict(next(iter(ecs.definitions.values()))))
    assert isinstance(desk.create(), Ready)
    assert ecs.made() == {WORKER: 1}


def test_what_jobs_named_does_not_pile_up(ecs: Ecs, desk: Desk) -> None:
    for number in range(30):
        desk.create(f"{WORKER}{number}", options=own(number))
        clean(desk, f"{WORKER}{number}")
        assert len(ecs.active()) <= 2
    desk.create(OTHER)
    assert made()["family"] in ecs.active()


def test_what_a_task_uses_and_what_the_site_says_is_kept(ecs: Ecs, desk: Desk) -> None:
    desk.create(OTHER)
    clean(desk, OTHER)
    for number in range(8):
        desk.create(f"{WORKER}{number}", options=own(number))
    assert set(ecs.active()) == {made()["family"], *(made(own(number)["image"])["family"] for number in range(8))}


def test_how_many_are_looked_at_is_bounded(ecs: Ecs, desk: Desk) -> None:
    for number in range(20):
        desk.create(f"{WORKER}{number}", options=own(number))
    ecs.calls.clear()
    desk.create(OTHER, options=own(20))
    assert [name for name, params in ecs.calls if name == "ListTasks" and "family" in params] == ["ListTasks"] * PRUNED


def test_those_of_others_are_left_alone(ecs: Ecs, desk: Desk) -> None:
    factory(ecs, "elsewhere").create(order(OTHER, options=own(1)))
    factory(ecs, site="Penstock.eu-west-2").create(order(MORE[0], options=own(1)))
    for each in ecs.tasks.values():
        ecs.end(each.arn, "EssentialContainerExited", "done")
    before = set(ecs.active())
    desk.create(options=own(2))
    assert before < set(ecs.active())


@pytest.mark.parametrize("call", ["ListTaskDefinitionFamilies", "DeregisterTaskDefinition", "ListTaskDefinitions"])
def test_no_job_fails_by_what_is_left(ecs: Ecs, desk: Desk, call: str) -> None:
    desk.create(options=own(1))
    clean(desk)
    ecs.fail(call, "AccessDeniedException", times=9)
    desk.create(OTHER, options=own(2))
    assert ecs.made()[OTHER] == 1


def test_one_that_went_between_two_calls_is_registered_again(ecs: Ecs, desk: Desk, monkeypatch: Any) -> None:
    run = ecs._run

    def late(params: dict[str, Any]) -> Any:
        monkeypatch.setattr(ecs, "_run", run)
        ecs.definitions[next(iter(ecs.definitions))]["status"] = "INACTIVE"
        raise Refusal("ClientException", "TaskDefinition is inactive")

    monkeypatch.setattr(ecs, "_run", late)
    with pytest.raises(Unknown, match="inactive"):
        desk.create()
    assert isinstance(desk.create(), Ready)


def test_none_has_a_secret(ecs: Ecs, desk: Desk) -> None:
    desk.create()
    assert "key" not in json.dumps(next(iter(ecs.definitions.values()))["containerDefinitions"][0]["linuxParameters"])
    assert "environment" not in next(iter(ecs.definitions.values()))["containerDefinitions"][0]
