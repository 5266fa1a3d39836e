"""The parts of the `http` well: settings, options, signatures, and whom it talks to. [SEC-1] [SEC-2]"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import ssl
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from penstock.drivers import MAKER
from penstock.drivers.http import client, protocol, transport
from penstock.drivers.http.transport import Service
from penstock.drivers.wells.http import settings
from penstock.drivers.wells.http.settings import objections
from penstock.drivers.wells.http.well import HttpWell
from penstock.kernel.errors import Misconfigured, Unknown
from penstock.ports import Order
from tests.wells.rack import Rack
from tests.wells.service import SECRET, SURROUNDINGS, well

GOOD = {"url": "https://rack.example.com/penstock", "secret": "secretsmanager:penstock/rack#key", "timeout": "10s"}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"url": "http://rack.example.com"}, "must be https"),
        ({"url": "ftp://rack.example.com"}, "not an http or https URL"),
        ({"url": "https://"}, "not an http or https URL"),
        ({"url": "https://rack:99999"}, "not a URL"),
        ({"url": "https://ada:secret@rack.example.com"}, "credentials"),
        ({"url": "https://rack.example.com?a=1"}, "query"),
        ({"url": "https://rack.example.com#a"}, "query"),
        ({"url": "https://räck.example.com"}, "characters"),
        ({"url": "https://rack.example.com/a b"}, "characters"),
        ({"url": "http://localhost.example.com"}, "must be https"),
        ({"url": "http://169.254.169.254"}, "must be https"),
        ({"secret": "the secret itself"}, "reference"),
        ({"secret": "secretsmanager:other/rack"}, "reference"),
        ({"timeout": "21s"}, "20 seconds"),
        ({"options": {"a": {"type": "object"}}}, "not one of"),
        ({"options": {"a": {"type": "integer", "enum": ["x"]}}}, "enum"),
        ({"options": {"a": {"max": "8"}}}, "a number"),
        ({"no_such": 1}, "no_such"),
    ],
)
def test_settings_are_checked(change: dict[str, Any], part: str) -> None:
    assert settings.complaints(GOOD) == []
    assert any(part in each for each in settings.complaints({**GOOD, **change}))
    with pytest.raises(Misconfigured):
        settings.read({**GOOD, **change})


@pytest.mark.parametrize("url", ["http://127.0.0.1:8700", "http://localhost", "http://[::1]:80/a", "https://10.0.0.7/"])
def test_what_may_be_a_service(url: str) -> None:
    assert settings.complaints({**GOOD, "url": url}) == []


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"size": "small"}, None),
        ({"size": "small", "disks": 8, "share": 0.5, "fast": True, "note": "x" * 10}, None),
        ({}, "'size' is required"),
        ({"size": "huge"}, "one of small, large"),
        ({"size": 1}, "type string"),
        ({"size": "small", "disks": 9}, "at least 1 and at most 8"),
        ({"size": "small", "disks": 0}, "at least 1"),
        ({"size": "small", "disks": True}, "type integer"),
        ({"size": "small", "disks": 1.5}, "type integer"),
        ({"size": "small", "share": True}, "type number"),
        ({"size": "small", "fast": 1}, "type boolean"),
        ({"size": "small", "note": "x" * 11}, "10 characters"),
        ({"size": "small", "speed": 1}, "'speed'"),
    ],
)
def test_options_are_checked(options: dict[str, Any], part: str | None) -> None:
    given = {
        "size": {"enum": ["small", "large"], "required": True}, "disks": {"type": "integer", "min": 1, "max": 8},
        "share": {"type": "number"}, "fast": {"type": "boolean"}, "note": {"max": 10},
    }  # fmt: skip
    schema = settings.read({**GOOD, "options": given}).options
    found = objections(schema, options)
    assert [part in each for each in found] == [True] if part else found == []


def test_what_a_job_asks_for_is_checked_by_the_wells_own_settings() -> None:
    given = {**GOOD, "options": {"size": {"enum": ["small"]}}}
    assert HttpWell.objections({"size": "small"}, given, {}) == []
    assert "one of small" in HttpWell.objections({"size": "huge"}, given)[0]
    assert HttpWell.objections({"size": "huge"}) == []


def test_a_well_without_options_takes_none() -> None:
    assert objections({}, {"a": 1}) == ["there is no option 'a': the well has no options"]


def test_the_signatures_are_those_that_the_document_describes() -> None:
    lines = f"penstock-v1\nrequest\nPUT\n/resources/r-1\na=b\n1700000000\nid\n{hashlib.sha256(b'body').hexdigest()}"
    wanted = "v1=" + hmac.new(b"secret", lines.encode(), hashlib.sha256).hexdigest()
    made = protocol.sign_request("secret", "PUT", "/resources/r-1", "a=b", "1700000000", "id", b"body")
    assert made == wanted
    lines = f"penstock-v1\nanswer\n404\nid\n{hashlib.sha256(b'').hexdigest()}"
    wanted = "v1=" + hmac.new(b"secret", lines.encode(), hashlib.sha256).hexdigest()
    assert protocol.sign_answer("secret", 404, "id", b"") == wanted
    assert protocol.is_same(wanted, wanted)
    assert not protocol.is_same(wanted, "v1=é")


def sent(rack: Rack, **changes: str) -> int:
    """A request as somebody on the way might send it."""
    was = {"method": "DELETE", "path": "/resources/r-1", "query": "owner=a", "timestamp": "", "request": "id"}
    was["timestamp"] = changes.pop("timestamp", None) or str(int(client.time.time()))
    secret = changes.pop("secret", SECRET)
    signature = protocol.sign_request(secret, **was, body=b"")
    now = {**was, **changes}
    headers = {"Penstock-Timestamp": now["timestamp"], "Penstock-Request": now["request"]}
    asked = urllib.request.Request(
        f"{rack.url}{now['path']}?{now['query']}",
        method=now["method"],
        headers={**headers, "Penstock-Signature": signature},
    )
    try:
        with urllib.request.urlopen(asked) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize(
    "change",
    [
        {"method": "GET"}, {"path": "/resources/r-2"}, {"query": "owner=b"}, {"request": "other"}, {"secret": "x" * 40},
        {"timestamp": "1700000000"}, {"timestamp": str(10**11)},
    ],
    ids=["method", "path", "query", "request", "secret", "too old", "too new"],
)  # fmt: skip
def test_the_example_refuses_what_was_changed_or_is_not_of_now(rack: Rack, change: dict[str, str]) -> None:
    well(rack.url).create(Order("r-1", "project", "1"))
    assert sent(rack, **change) == 401
    assert list(rack.units) == ["r-1"]


def test_the_example_refuses_what_was_here_before(rack: Rack) -> None:
    assert sent(rack) == 404
    well(rack.url).create(Order("r-1", "project", "1"))
    assert sent(rack) == 401
    assert list(rack.units) == ["r-1"]


def test_a_wrong_secret_is_reported_to_the_operator(rack: Rack) -> None:
    environment = {**SURROUNDINGS, MAKER: "rack", "RACK": "another secret that is thirty-two long"}
    with pytest.raises(Misconfigured, match="it refuses the signature"):
        HttpWell({"url": rack.url, "secret": "env:RACK"}, environment).list()


def test_a_secret_that_anybody_guesses_is_none(rack: Rack) -> None:
    environment = {**SURROUNDINGS, MAKER: "rack", "RACK": "hunter2"}
    with pytest.raises(Misconfigured, match="fewer than 32") as told:
        HttpWell({"url": rack.url, "secret": "env:RACK"}, environment).list()
    assert "hunter2" not in str(told.value)
    assert not rack.asked


def test_beside_the_local_cloud_a_secret_may_be_in_a_file(rack: Rack, tmp_path: Path) -> None:
    file = tmp_path / "rack.secret"
    given = {"url": rack.url, "secret": f"file:{file}"}
    with pytest.raises(Misconfigured, match="cannot be read"):
        HttpWell(given, {**SURROUNDINGS, MAKER: "rack"}).list()
    file.write_text(f"{SECRET}\n")
    assert HttpWell(given, {**SURROUNDINGS, MAKER: "rack"}).list() == []
    deployed = {key: value for key, value in SURROUNDINGS.items() if key != "PENSTOCK_HOME"}
    away = {"url": "https://rack.example.com", "secret": f"file:{file}"}
    with pytest.raises(Misconfigured, match="only with the local cloud"):
        HttpWell(away, {**deployed, MAKER: "rack"}).list()


def test_a_well_must_know_its_name() -> None:
    with pytest.raises(Misconfigured, match="needs PENSTOCK_MAKER"):
        HttpWell(GOOD, SURROUNDINGS)


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "169.254.170.2", "fe80::1%eth0", "fd00:ec2::254", "::ffff:169.254.169.254", "0.0.0.0", "::",
     "224.0.0.1", "127.0.0.1", "::1", "::ffff:127.0.0.1"],
)  # fmt: skip
def test_no_name_leads_to_where_credentials_are_told(address: str) -> None:
    """SEC-1: whatever a name says when it is asked for, the address that was connected decides."""
    with pytest.raises(Misconfigured, match="which a service must not have"):
        transport._check(address, Service("rack.example.com", 443, is_tls=True))
    local = Service("localhost", 443, is_tls=True, is_local=True)
    is_loopback = (ip_address(address.partition("%")[0].removeprefix("::ffff:"))).is_loopback
    if is_loopback:
        transport._check(address, local)
    else:
        with pytest.raises(Misconfigured):
            transport._check(address, local)


@pytest.mark.parametrize("address", ["10.0.0.7", "192.168.1.1", "203.0.113.9", "fd12::1", "2001:db8::1"])
def test_services_may_be_in_a_network_of_ones_own(address: str) -> None:
    transport._check(address, Service("rack.example.com", 443, is_tls=True))


def test_who_may_not_be_asked_hears_nothing(rack: Rack) -> None:
    with pytest.raises(Misconfigured):
        transport.send(Service("localhost", rack.port, is_tls=False), "GET", "/", {}, b"", 2)
    assert not rack.asked


def test_in_a_function_of_an_account_this_machine_is_no_service(rack: Rack) -> None:
    environment = {key: value for key, value in SURROUNDINGS.items() if key != "PENSTOCK_HOME"}
    with pytest.raises(Misconfigured, match="only with the local cloud"):
        HttpWell({"url": rack.url, "secret": "env:RACK"}, {**environment, MAKER: "rack"}).list()
    assert not rack.asked


def test_the_requests_of_one_step_have_a_time_limit(rack: Rack) -> None:
    times = iter([0.0, 0.0, 19.5])
    given = settings.read({"url": rack.url, "secret": "env:RACK"})
    asked = client.Client(given, lambda: SECRET, is_local=True, monotonic=lambda: next(times))
    asked.call("GET", query={"owner": "a", "limit": 1})
    with pytest.raises(Unknown, match="more than 20 s"):
        asked.call("GET", query={"owner": "a", "limit": 1})


def test_who_is_not_there_is_an_error_of_the_closed_set(rack: Rack) -> None:
    rack.end()
    with pytest.raises(Unknown, match="no answer"):
        well(rack.url).list()
    with pytest.raises(Unknown, match="no answer"):
        HttpWell({"url": "https://nobody.invalid", "secret": "env:RACK"}, {**SURROUNDINGS, MAKER: "rack"}).list()


def test_an_untrusted_certificate_is_refused(tmp_path: Path) -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path))
    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.handle_request, daemon=True).start()
    with pytest.raises(Unknown, match="SSLCertVerificationError"):
        well(f"https://localhost:{server.server_port}").list()
    server.server_close()
    assert not asked


def certificate(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "certificate.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path
