"""A machine is known by its identity document: which AWS signed, for this region, account and machine. [SEC-2]

The keys are made here. By hand the same was done with AWS's own certificates and with documents that it signed, which
are not ours to keep.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

from penstock.drivers.factories.ec2 import settings as ec2_settings
from penstock.drivers.factories.ec2.identity import PublicKey, is_signed, mismatch, read_certificates
from penstock.ports import IdentityDriver
from tests.ec2.authority import INSTANCE, authority, certificate
from tests.ec2.fake import ACCOUNT, Ec2
from tests.ec2.helpers import SETTINGS, factory

MADE = {"instance": INSTANCE, "account": ACCOUNT, "type": "m7g.large"}


def check(shown: dict[str, str], pem: str = "", made: dict[str, Any] = MADE, region: str = "eu-west-1") -> str | None:
    return mismatch(shown, read_certificates(pem or authority().pem), region, made)


@pytest.mark.parametrize("bits", [1024, 2048, 3072])
def test_the_machine_that_was_made_is_no_stranger(bits: int) -> None:
    assert check(authority(bits).shown(), authority(bits).pem) is None


@pytest.mark.parametrize("shown", [{}, {"document": "{}"}, {"signature": "AA=="}, {"document": "", "signature": ""}])
def test_who_shows_nothing_is_one(shown: dict[str, str]) -> None:
    assert check(shown) == "it showed no identity document"


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"region": "us-east-1"}, "has region us-east-1, but the launched machine has eu-west-1"),
        ({"accountId": "999999999999"}, f"has accountId 999999999999, but the launched machine has {ACCOUNT}"),
        ({"instanceId": "i-0"}, f"has instanceId i-0, but the launched machine has {INSTANCE}"),
        ({"instanceId": None}, "has instanceId None"),
    ],
)
def test_another_machine_is_one_although_aws_signed_for_it(told: dict[str, Any], why: str) -> None:
    assert why in str(check(authority().shown(**told)))


HALF: list[dict[str, Any]] = [{}, {"instance": INSTANCE}, {"account": ACCOUNT}, {"instance": "", "account": ACCOUNT}]


@pytest.mark.parametrize("made", HALF)
def test_where_nobody_knows_what_was_made_every_machine_is_one(made: dict[str, Any]) -> None:
    assert check(authority().shown(instanceId=made.get("instance")), made=made)


def test_a_document_that_says_otherwise_than_what_was_signed() -> None:
    shown = authority().shown(instanceId="i-0")
    forged = shown | {"document": shown["document"].replace("i-0", INSTANCE)}
    assert check(forged) == "its identity document is not signed with a trusted certificate of AWS"
    assert (
        check(shown | {"document": shown["document"] + " "})
        == "its identity document is not signed with a trusted certificate of AWS"
    )


def test_a_document_that_somebody_else_signed() -> None:
    assert check(authority(1024, 2).shown()) == "its identity document is not signed with a trusted certificate of AWS"
    assert check(authority(2048).shown()) == "its identity document is not signed with a trusted certificate of AWS"


@pytest.mark.parametrize("signature", ["!", "AA==", "AAAA" * 1000, "é", "A"])
def test_what_is_no_signature(signature: str) -> None:
    assert check(authority().shown() | {"signature": signature})


@pytest.mark.parametrize("document", ["\ud800", "[", "null\0"])
def test_what_is_no_document(document: str) -> None:
    assert check(authority().shown() | {"document": document})


def test_two_consecutive_certificates_are_both_trusted() -> None:
    both = authority().pem + "\n# and the next\n" + authority(1024, 2).pem
    assert check(authority().shown(), both) is None
    assert check(authority(1024, 2).shown(), both) is None


class TestSignature:
    """RFC 8017, section 8.2.2: the whole of what was signed is compared, and nothing of it is read."""

    TEXT = b"document"

    def key(self) -> PublicKey:
        return read_certificates(authority().pem)[0]

    def made(self, block: bytes) -> bytes:
        """The signature of a block of ours, whatever it is."""
        numbers = authority().secret.private_numbers()
        size = 128
        return pow(int.from_bytes(block, "big"), numbers.d, numbers.public_numbers.n).to_bytes(size, "big")

    def block(self, digest: bytes, filling: int | None = None, rest: bytes = b"") -> bytes:
        free = 128 - 3 - len(digest) - len(rest) if filling is None else filling
        return b"\0\1" + b"\xff" * free + b"\0" + digest + rest

    def digest(self) -> bytes:
        told = hashes.Hash(hashes.SHA256())
        told.update(self.TEXT)
        return bytes.fromhex("3031300d060960864801650304020105000420") + told.finalize()

    def test_a_right_one(self) -> None:
        assert is_signed(self.TEXT, self.made(self.block(self.digest())), self.key())

    def test_one_with_something_behind_the_digest(self) -> None:
        """Bleichenbacher's forgery of 2006: short filling, and the rest at the forger's will."""
        forged = self.block(self.digest(), filling=8)
        forged += b"\x5a" * (128 - len(forged))
        assert not is_signed(self.TEXT, self.made(forged), self.key())

    def test_other_fillings_and_other_digests(self) -> None:
        right = self.block(self.digest())
        for wrong in (
            b"\0\2" + right[2:],
            right[:10] + b"\xfe" + right[11:],
            self.block(self.digest()[19:]),
            self.block(b"\x30\x2f\x30\x0b" + self.digest()[4:15] + self.digest()[17:]),
        ):
            assert not is_signed(self.TEXT, self.made(wrong), self.key())

    def test_another_hash(self) -> None:
        sha1 = authority().secret.sign(self.TEXT, padding.PKCS1v15(), hashes.SHA1())
        assert not is_signed(self.TEXT, sha1, self.key())
        pss = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
        assert not is_signed(self.TEXT, authority().secret.sign(self.TEXT, pss, hashes.SHA256()), self.key())

    def test_its_length_is_that_of_the_key_and_its_number_below_it(self) -> None:
        right = self.made(self.block(self.digest()))
        assert not is_signed(self.TEXT, right[1:], self.key())
        assert not is_signed(self.TEXT, b"\0" + right, self.key())
        more = int.from_bytes(right, "big") + self.key().modulus
        if more.bit_length() <= 1024:
            assert not is_signed(self.TEXT, more.to_bytes(128, "big"), self.key())
        for number in (0, 1, self.key().modulus):
            assert not is_signed(self.TEXT, number.to_bytes(128, "big"), self.key())
        assert not is_signed(self.TEXT, b"", self.key())

    def test_the_librarys_own_verdict_is_the_same(self) -> None:
        signature = authority().secret.sign(self.digest()[19:], padding.PKCS1v15(), Prehashed(hashes.SHA256()))
        assert is_signed(self.TEXT, signature, self.key())


class TestCertificates:
    """What a site may say."""

    def test_the_key_is_that_of_the_certificate(self) -> None:
        numbers = authority().secret.public_key().public_numbers()
        assert read_certificates(authority().pem) == (PublicKey(numbers.n, numbers.e),)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "yes",
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----",
        ],
    )
    def test_what_is_none(self, text: str) -> None:
        with pytest.raises(ValueError, match="certificate"):
            read_certificates(text)
        (told,) = ec2_settings.complaints({**SETTINGS, "identity": text})
        assert "AWS publishes" in told

    def test_every_beginning_of_one_is_none(self) -> None:
        body = "".join(authority().pem.splitlines()[1:-1])
        der = base64.b64decode(body)
        for cut in range(0, len(der), 7):
            short = base64.b64encode(der[:cut]).decode()
            with pytest.raises(ValueError, match="certificate"):
                read_certificates(f"-----BEGIN CERTIFICATE-----\n{short}\n-----END CERTIFICATE-----")

    def test_other_keys(self) -> None:
        """AWS also publishes certificates for another kind of signature."""
        curve = certificate(ec.generate_private_key(ec.SECP256R1()))
        with pytest.raises(ValueError, match="not an RSA key"):
            read_certificates(curve)

    def test_a_site_that_gives_one(self) -> None:
        assert ec2_settings.complaints({**SETTINGS, "identity": authority().pem}) == []
        assert ec2_settings.read({**SETTINGS, "identity": authority().pem}).identity == read_certificates(
            authority().pem
        )
        assert len(ec2_settings.complaints({**SETTINGS, "identity": True})) == 1

    def test_without_the_identity_setting_nothing_is_checked(self, ec2: Ec2) -> None:
        assert factory(ec2).identity_mismatch({}, MADE) is None
        asked = factory(ec2, identity=authority().pem)
        assert isinstance(asked, IdentityDriver)
        assert asked.identity_mismatch({}, MADE)
        assert asked.identity_mismatch(authority().shown(), MADE) is None
        assert ec2.calls == []
