"""libcloud's own drivers for OpenStack, Azure and Google, over answers that its authors recorded and ship. [UNIT-1]

What differs from the recording is put in here: names, states, and what was asked for.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import libcloud
import pytest
import responses
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from penstock.domain.account import Thing
from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.libcloud.factory import SITE, LibcloudFactory
from penstock.drivers.factories.libcloud.names import Names
from penstock.kernel.errors import NoCapacity
from penstock.ports import NotYet, Ready
from tests.clouds.helpers import HERE, KEY, NOW, WORKER, order

FIXTURES = Path(libcloud.__file__).parent / "test" / "compute" / "fixtures"
NAME = Names(HERE, "lab", "penstock").of(WORKER)
LATE = NOW + timedelta(hours=1)
COMPUTE = "http://192.168.18.100:8774/v2/9c4693dce56b493b9b83197d900f7fba"
KEYSTONE = "http://192.168.18.100:35357"
GROUP = "https://management.azure.com/subscriptions/99999999/resourceGroups/workers/providers"
VIEW = "_subscriptions_99999999_resourceGroups_000000_" + (
    "providers_Microsoft_Compute_virtualMachines_test_node_1_InstanceView.json"
)
SUBSCRIPTION = "https://management.azure.com/subscriptions/99999999/providers"


def recorded(*path: str) -> Any:
    return json.loads(FIXTURES.joinpath(*path).read_text())


def factory(settings: dict[str, Any]) -> LibcloudFactory:
    return LibcloudFactory(settings, {SITE: HERE, MAKER: "lab", "WHO": "user", "SECRET": "hunter2hunter2"})


@pytest.fixture
def web() -> Iterator[responses.RequestsMock]:
    """Nothing else is reached."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


def asked(web: responses.RequestsMock, method: str, ending: str) -> list[Any]:
    """The bodies of requests of a kind."""
    found = [each.request for each in web.calls if each.request.method == method]
    return [json.loads(each.body) if each.body else None for each in found if each.url.split("?")[0].endswith(ending)]


class TestOpenStack:
    SETTINGS: ClassVar[dict[str, Any]] = {
        "provider": "openstack",
        "image": "f24a3c1b-d52a-4116-91da-25b3eee8f55e",
        "sizes": ["1GB slice"],
        "locations": ["nova-a"],
        "credentials": {"key": "env:WHO", "secret": "env:SECRET"},
        "arguments": {
            "ex_force_auth_url": KEYSTONE,
            "ex_force_auth_version": "3.x_password",
            "ex_tenant_name": "ci",
            "ex_force_service_region": "regionOne",
        },
        "create": {"networks": ["net-1"], "ex_security_groups": ["workers"]},
    }

    @pytest.fixture
    def servers(self, web: responses.RequestsMock) -> list[Any]:
        """Puts a cloud up; what it lists."""
        listed: list[Any] = []
        token = recorded("openstack", "_v3__auth.json")
        token["token"]["expires_at"] = "2999-01-01T00:00:00.000000Z"
        for entry in token["token"]["catalog"]:  # the recording is of a Keystone that gave no names yet
            entry["name"] = {"compute": "nova", "image": "glance"}.get(entry["type"], entry["type"])
        web.post(f"{KEYSTONE}/v3/auth/tokens", json=token, status=201, headers={"X-Subject-Token": "token"})
        web.get(f"{COMPUTE}/flavors/detail", json=recorded("openstack_v1_1", "_flavors_detail.json"))
        image = recorded("openstack_v1_1", "_images_f24a3c1b-d52a-4116-91da-25b3eee8f55e.json")
        web.get(re.compile(r".*/v2/images/.*"), json=image)
        web.add_callback("GET", f"{COMPUTE}/servers/detail", lambda _: self.page(listed, _))
        web.post(f"{COMPUTE}/servers", json=recorded("openstack_v1_1", "_servers_create.json"), status=202)
        made = recorded("openstack_v1_1", "_servers_26f7fbee_8ce1_4c28_887a_bfe8e4bb10fe.json")
        made["server"]["status"] = "BUILD"
        web.get(f"{COMPUTE}/servers/26f7fbee-8ce1-4c28-887a-bfe8e4bb10fe", json=made)
        web.delete(re.compile(f"{COMPUTE}/servers/.*"), status=204)
        return listed

    @staticmethod
    def page(listed: list[Any], request: Any) -> tuple[int, dict[str, str], str]:
        """One machine to a page, to see them turned."""
        at = int(request.params.get("marker", 0))
        page: dict[str, Any] = {"servers": listed[at : at + 1]}
        if at + 1 < len(listed):
            page["servers_links"] = [{"rel": "next", "href": f"{COMPUTE}/servers/detail?marker={at + 1}"}]
        return 200, {"Content-Type": "application/json"}, json.dumps(page)

    @staticmethod
    def in_error(message: str) -> Any:
        (server,) = recorded("openstack_v1_1", "_servers_detail_ERROR_STATE.json")["servers"]
        tags = {"penstock-way": "1gb-slice-in-nova-a"}
        return {**server, "name": NAME, "metadata": tags, "fault": {"message": message}}

    def test_a_machine_is_asked_for(self, web: responses.RequestsMock, servers: list[Any]) -> None:
        assert servers == []
        done = factory(self.SETTINGS).create(order())
        assert isinstance(done, NotYet)
        assert done.reason == "its cloud is looking for a place for its machine"
        (body,) = asked(web, "POST", "/servers")
        server = body["server"]
        assert (server["name"], server["flavorRef"], server["availability_zone"]) == (NAME, "3", "nova-a")
        assert server["imageRef"] == self.SETTINGS["image"]
        assert (server["networks"], server["security_groups"]) == ([{"uuid": "net-1"}], [{"name": "workers"}])
        assert KEY in base64.b64decode(server["user_data"]).decode()
        assert server["metadata"]["penstock-worker"] == WORKER.lower()
        assert "block_device_mapping_v2" not in server

    def test_a_volume_that_is_made_with_a_machine_ends_with_it(
        self, web: responses.RequestsMock, servers: list[Any]
    ) -> None:
        assert servers == []
        volume = {"boot_index": 0, "source_type": "image", "destination_type": "volume", "uuid": "i", "volume_size": 20}
        settings = {**self.SETTINGS, "create": {**self.SETTINGS["create"], "ex_blockdevicemappings": [volume]}}
        factory(settings).create(order())
        (body,) = asked(web, "POST", "/servers")
        assert body["server"]["block_device_mapping_v2"] == [{**volume, "delete_on_termination": True}]

    def test_its_volumes_are_not_asked_for(self, web: responses.RequestsMock, servers: list[Any]) -> None:
        """Nothing in them says for which machine they were made."""
        servers.append(self.in_error("No valid host was found."))
        assert [each.kind for each in factory(self.SETTINGS).things()] == ["machine"]
        assert [each for each in web.calls if "/volumes" in each.request.url] == []

    def test_every_page_is_read_before_one_is_asked_for(self, web: responses.RequestsMock, servers: list[Any]) -> None:
        others = recorded("openstack_v1_1", "_servers_detail.json")["servers"]
        servers += [*others, {**others[0], "id": "ours", "name": NAME, "status": "ACTIVE"}]
        done = factory(self.SETTINGS).create(order())
        assert isinstance(done, Ready)
        assert done.metadata["machine"] == "ours"
        assert asked(web, "POST", "/servers") == []
        assert list(factory(self.SETTINGS).list()) == [WORKER]
        assert isinstance(factory(self.SETTINGS).destroy(WORKER, LATE), NotYet)
        assert len(asked(web, "DELETE", "/servers/ours")) == 1
        servers.pop()
        assert isinstance(factory(self.SETTINGS).destroy(WORKER, LATE), CleanProof)
        assert len([each for each in web.calls if each.request.method == "DELETE"]) == 1

    def test_a_machine_for_which_the_cloud_found_no_host_is_destroyed(
        self, web: responses.RequestsMock, servers: list[Any]
    ) -> None:
        servers.append(self.in_error("No valid host was found. There are not enough hosts available."))
        with pytest.raises(NoCapacity) as caught:
            factory(self.SETTINGS).create(order())
        assert [each.scope.rpartition("/")[0].rpartition("/")[2] for each in caught.value.shortages] == ["1GB slice"]
        assert len(asked(web, "DELETE", servers[0]["id"])) == 1


class TestAzure:
    SETTINGS: ClassVar[dict[str, Any]] = {
        "provider": "azure_arm",
        "image": "Canonical:ubuntu:server:24.04.1",
        "sizes": ["Standard_A1"],
        "locations": ["eastus"],
        "ssh_key": "ssh-ed25519 AAAA",
        "credentials": {"key": "env:WHO", "secret": "env:SECRET"},
        "arguments": {"tenant_id": "77777777", "subscription_id": "99999999"},
        "create": {"ex_resource_group": "workers", "ex_network": "net"},
    }

    @pytest.fixture
    def account(self, web: responses.RequestsMock) -> dict[str, list[Any]]:
        """Puts a cloud up; what it lists."""
        listed: dict[str, list[Any]] = {"machines": [], "cards": [], "disks": []}
        token = recorded("azure_arm", "_77777777_7777_7777_7777_777777777777_oauth2_token.json")
        web.post("https://login.microsoftonline.com/77777777/oauth2/token", json={**token, "expires_on": "32503680000"})
        places = "_subscriptions_99999999_providers_Microsoft_Compute.json"
        web.get(f"{SUBSCRIPTION}/Microsoft.Compute", json=recorded("azure_arm", places))
        sizes = "_subscriptions_99999999_providers_Microsoft_Compute_locations_eastus_vmSizes.json"
        web.get(f"{SUBSCRIPTION}/Microsoft.Compute/locations/eastus/vmSizes", json=recorded("azure_arm", sizes))
        for url, what in (
            (f"{SUBSCRIPTION}/Microsoft.Compute/virtualMachines", "machines"),
            (f"{GROUP}/Microsoft.Network/networkInterfaces", "cards"),
        ):
            web.add_callback("GET", url, lambda _, what=what: (200, {}, json.dumps({"value": listed[what]})))
        web.add_callback("GET", f"{SUBSCRIPTION}/Microsoft.Compute/disks", lambda _: self.page(listed["disks"], _))
        web.put(f"{GROUP}/Microsoft.Network/networkInterfaces/{NAME}-nic", json=self.card(f"{NAME}-nic"))
        web.put(f"{GROUP}/Microsoft.Compute/virtualMachines/{NAME}", json=self.machine("Creating"))
        view = recorded("azure_arm", VIEW)
        web.get(f"{GROUP}/Microsoft.Compute/virtualMachines/{NAME}/InstanceView", json=view)
        web.get(re.compile(r".*/publicIPAddresses/.+"), json={"id": "x", "name": "x", "properties": {}})
        web.get(re.compile(r".*/Microsoft.Network/networkInterfaces/.+"), json=self.card("x"))
        web.delete(re.compile(f"{GROUP}/.*"), status=202)
        return listed

    @staticmethod
    def page(listed: list[Any], request: Any) -> tuple[int, dict[str, str], str]:
        """One disk to a page, to see them turned."""
        at = int(request.params.get("$skiptoken", 0))
        page: dict[str, Any] = {"value": listed[at : at + 1]}
        if at + 1 < len(listed):
            page["nextLink"] = f"{SUBSCRIPTION}/Microsoft.Compute/disks?api-version=2023-01-02&$skiptoken={at + 1}"
        return 200, {"Content-Type": "application/json"}, json.dumps(page)

    @staticmethod
    def disk(name: str) -> Any:
        made = recorded("azure_arm", "_subscriptions_99999999_providers_Microsoft_Compute_disks.json")["value"][0]
        path = f"/subscriptions/99999999/resourceGroups/WORKERS/providers/Microsoft.Compute/disks/{name}"
        return {**made, "name": name, "id": path}

    @staticmethod
    def card(name: str) -> Any:
        made = recorded("azure_arm", "_subscriptions_99999999_providers_Microsoft_Network_networkInterfaces.json")
        path = f"/subscriptions/99999999/resourceGroups/workers/providers/Microsoft.Network/networkInterfaces/{name}"
        return {**made["value"][0], "name": name, "id": path}

    @staticmethod
    def machine(state: str, name: str = NAME) -> Any:
        made = recorded("azure_arm", "_subscriptions_99999999_providers_Microsoft_Compute_virtualMachines.json")
        found = made["value"][0]
        found["properties"]["provisioningState"] = state
        path = f"/subscriptions/99999999/resourceGroups/workers/providers/Microsoft.Compute/virtualMachines/{name}"
        return {**found, "name": name, "id": path}

    def test_a_machine_is_asked_for(self, web: responses.RequestsMock, account: dict[str, list[Any]]) -> None:
        assert account["machines"] == []
        assert isinstance(factory(self.SETTINGS).create(order()), Ready)
        (body,) = asked(web, "PUT", f"/virtualMachines/{NAME}")
        assert KEY in base64.b64decode(body["properties"]["osProfile"]["customData"]).decode()
        disk = body["properties"]["storageProfile"]["osDisk"]
        assert disk["deleteOption"] == "Delete"
        assert "managedDisk" in disk
        assert body["tags"]["penstock-worker"] == WORKER.lower()
        assert body["properties"]["hardwareProfile"]["vmSize"] == "Standard_A1"
        assert len(asked(web, "PUT", f"/networkInterfaces/{NAME}-nic")) == 1

    def test_a_card_outlives_its_machine_and_goes_too(
        self, web: responses.RequestsMock, account: dict[str, list[Any]]
    ) -> None:
        account["machines"] = [self.machine("Succeeded"), self.machine("Succeeded", "web-1")]
        account["cards"] = [self.card(f"{NAME}-nic"), self.card("web-1-nic")]
        made = factory(self.SETTINGS)
        assert isinstance(made.destroy(WORKER, LATE), NotYet)
        account["machines"][0] = self.machine("Deleting")
        assert isinstance(made.destroy(WORKER, LATE), NotYet)
        assert list(made.list()) == [WORKER]
        account["machines"].pop(0)
        assert isinstance(made.destroy(WORKER, LATE), NotYet)
        assert list(made.list()) == [WORKER]
        account["cards"].pop(0)
        assert isinstance(made.destroy(WORKER, LATE), CleanProof)
        assert list(made.list()) == []
        ended = [each.request.url for each in web.calls if each.request.method == "DELETE"]
        assert not [url for url in ended if "web-1" in url]
        assert [f"/{NAME}-nic?" in url for url in ended] == [False, False, True]

    def test_machines_cards_and_disks_are_things(
        self, web: responses.RequestsMock, account: dict[str, list[Any]]
    ) -> None:
        """The disk of an image's second drive is one that Azure keeps when it deletes the machine."""
        del web
        gone = Names(HERE, "gone", "penstock").of(WORKER)
        account["machines"] = [self.machine("Deleting"), self.machine("Succeeded", "web-1")]
        account["cards"] = [self.card(f"{NAME}-nic"), self.card("web-1-nic")]
        account["disks"] = [self.disk(name) for name in ("web-1", NAME, f"{NAME}_disk2_5f4e", gone)]
        ids = [account["machines"][0]["id"], account["cards"][0]["id"], *(one["id"] for one in account["disks"][1:])]
        found = list(factory(self.SETTINGS).things())
        assert [each.kind for each in found] == ["machine", "network card", "disk", "disk", "disk"]
        assert [each.id for each in found][1:] == ids[1:]
        assert {each.unit for each in found} == {WORKER}
        assert [each.maker for each in found] == ["", "", "", "", "sha256:283bb9de"]


class TestGoogle:
    PROJECT = "https://www.googleapis.com/compute/v1/projects/ci-workers"

    @pytest.fixture
    def made(self, tmp_path: Path) -> LibcloudFactory:
        key = rsa.generate_private_key(65537, 2048).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        settings = {
            "provider": "gce",
            "image": "ubuntu",
            "sizes": ["e2-standard-4"],
            "credentials": {"user_id": "env:WHO", "key": "env:SECRET"},
            "arguments": {"project": "ci-workers", "credential_file": str(tmp_path / "token")},
        }
        who = "ci@ci-workers.iam.gserviceaccount.com"
        return LibcloudFactory(settings, {SITE: HERE, MAKER: "lab", "WHO": who, "SECRET": key.decode()})

    @pytest.fixture
    def disks(self, web: responses.RequestsMock) -> list[Any]:
        """Puts a project up; the disks that it lists, one to a page."""
        listed: list[Any] = []
        token = {"access_token": "token", "expires_in": 3600, "token_type": "Bearer"}
        web.post("https://accounts.google.com/o/oauth2/token", json=token)
        for what in ("zones", "regions"):
            web.get(f"{self.PROJECT}/{what}", json=recorded("gce", f"{what}.json"))
        web.get(f"{self.PROJECT}/aggregated/instances", json={"items": {}})
        web.add_callback("GET", f"{self.PROJECT}/aggregated/disks", lambda _: self.page(listed, _))
        return listed

    @staticmethod
    def page(listed: list[Any], request: Any) -> tuple[int, dict[str, str], str]:
        at = int(request.params.get("pageToken", 0))
        page: dict[str, Any] = {"items": dict(listed[at : at + 1])}
        if at + 1 < len(listed):
            page["nextPageToken"] = str(at + 1)
        return 200, {"Content-Type": "application/json"}, json.dumps(page)

    def test_a_disk_that_outlived_its_machine_is_a_thing(self, made: LibcloudFactory, disks: list[Any]) -> None:
        """On whatever page, and beside a disk that is in a region instead of a zone."""
        items = recorded("gce", "aggregated_disks.json")["items"]
        one = items["zones/us-central1-a"]["disks"][0]
        regional = {key: value for key, value in one.items() if key != "zone"} | {"name": "theirs"}
        ours = {**one, "name": NAME, "id": "4711"}
        disks += [
            *items.items(),
            ("regions/us-central1", {"disks": [regional]}),
            ("zones/us-central1-f", {"disks": [ours]}),
        ]
        assert list(made.things()) == [Thing("disk", "4711", WORKER)]
