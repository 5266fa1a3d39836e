"""What a site may say, and what it is told about the rest."""

from __future__ import annotations

import re
from typing import Any

import pytest

from penstock.drivers import MAKER, Registry
from penstock.drivers.factories.libcloud import settings as libcloud_settings
from penstock.drivers.factories.libcloud.alternatives import alternatives
from penstock.drivers.factories.libcloud.factory import SITE
from penstock.kernel.errors import Misconfigured
from tests.clouds.helpers import SETTINGS

AZURE = {
    "provider": "azure_arm",
    "sizes": ["Standard_D2s_v5"],
    "locations": ["westeurope"],
    "create": {"ex_resource_group": "workers", "ex_network": "net"},
}

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"provider": "opnstack"}, "no provider `opnstack`.*openstack"),
    ({"provider": 1}, "provider"),
    ({"sizes": []}, "sizes.*empty"),
    ({"sizes": ["s"] * 20, "locations": ["l", "m"]}, "make 40 alternatives"),
    ({"credentials": {"key": "hunter2"}}, "`key` is not a reference"),
    ({"credentials": {"key": 1}}, "wants a reference"),
    ({"credentials": {"key": "secretsmanager:elsewhere"}}, "not a reference"),
    ({"arguments": {"secret": "x"}}, "`secret` looks like a credential.*secretsmanager:"),
    ({"arguments": {"ex_force_auth_token": "x"}}, "looks like a credential"),
    ({"create": {"ex_admin_password": "x"}}, "looks like a credential"),
    ({"arguments": {"user_id": "x"}, "credentials": {"user_id": "env:X"}}, "also under `credentials`"),
    ({"create": {"name": "x"}}, "`name` cannot be set"),
    ({"create": {"ex_userdata": "x"}}, "`ex_userdata` cannot be set"),
    ({"prefix": "Penstock"}, "prefix"),
    ({"prefix": "a-b"}, "prefix"),
    ({"ssh_key": "AAAA"}, "public key"),
    ({"lag": 0}, "lag"),
    ({"boot_argument": "a b"}, "argument of create_node"),
    ({"provider": "openstack", "arguments": {"api_version": "1.1"}}, "must be 2.0 or more"),
    (AZURE | {"create": {}}, "no `ex_resource_group`"),
    (AZURE | {"locations": ["westeurope", "northeurope"]}, "must be one for Azure"),
]


@pytest.mark.parametrize(("more", "words"), WRONG, ids=[words for _, words in WRONG])
def test_what_is_wrong_is_told(more: dict[str, Any], words: str) -> None:
    found = libcloud_settings.complaints({**SETTINGS, **more})
    assert any(re.search(words, complaint) for complaint in found), found
    with pytest.raises(Misconfigured):
        libcloud_settings.read({**SETTINGS, **more})


def test_a_provider_that_is_not_known_needs_to_say_where_user_data_goes() -> None:
    given = {key: value for key, value in SETTINGS.items() if key != "boot_argument"}
    assert any("no `boot_argument`" in each for each in libcloud_settings.complaints(given))
    for provider in ("openstack", "gce", "digitalocean"):
        assert libcloud_settings.complaints({**given, "provider": provider}) == []
    assert libcloud_settings.complaints({**given, **AZURE}) == []


def test_a_secret_is_in_no_complaint() -> None:
    for more in ({"credentials": {"key": "hunter2"}}, {"arguments": {"secret": "hunter2"}}):
        assert "hunter2" not in " ".join(libcloud_settings.complaints({**SETTINGS, **more}))


def test_a_provider_is_known_by_either_way_to_write_it() -> None:
    assert libcloud_settings.read({**SETTINGS, "provider": "OPENSTACK"}).provider == "openstack"


def test_without_libcloud_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libcloud_settings, "find_spec", lambda name: None)
    monkeypatch.setattr("penstock.drivers.factories.libcloud.nodes.is_installed", libcloud_settings.is_installed)
    (complaint,) = Registry({}).complaints("factory", "libcloud", SETTINGS)
    assert "pip install penstock[libcloud]" in complaint
    made = Registry({SITE: "here"}).factory("libcloud", SETTINGS, "lab")
    with pytest.raises(Misconfigured, match="-c libcloud=true"):
        made.list()


def test_a_factory_that_does_not_know_where_it_is() -> None:
    for environment in ({}, {SITE: "here"}, {MAKER: "lab"}):
        with pytest.raises(Misconfigured, match="needs PENSTOCK_SITE and PENSTOCK_MAKER"):
            Registry(environment).factory("libcloud", SETTINGS)


def test_alternatives_are_size_by_size_and_scopes_tell_accounts_apart() -> None:
    ways = alternatives(libcloud_settings.read(SETTINGS))
    assert [str(way) for way in ways] == ["Small in London Loft", "Small in 3", "Medium in London Loft", "Medium in 3"]
    again = alternatives(libcloud_settings.read({**SETTINGS, "sizes": ["Small"], "image": "1"}))
    assert again[0].scopes == ways[0].scopes
    other = alternatives(libcloud_settings.read({**SETTINGS, "arguments": {"region": "x"}}))
    assert not other[0].scopes & ways[0].scopes
    assert [str(way) for way in alternatives(libcloud_settings.read({**SETTINGS, "locations": []}))] == [
        "Small",
        "Medium",
    ]
