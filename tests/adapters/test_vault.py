"""The vault over an emulated KMS."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from penstock.aws.kms import PIECE_BYTES, KmsVault

OF = {"unit": "r-1", "fence": "3"}


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Iterator[KmsVault]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws():
        client = boto3.client("kms", region_name="eu-west-1")
        yield KmsVault(client, client.create_key()["KeyMetadata"]["KeyId"])


@pytest.mark.parametrize("size", [1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
def test_what_is_sealed_is_opened_whole(vault: KmsVault, size: int) -> None:
    secret = bytes(at % 251 for at in range(size))
    sealed = vault.seal(secret, OF)
    assert vault.open(sealed, OF) == secret
    assert len(sealed.split(".")) == -(-size // PIECE_BYTES)


def test_a_sealed_text_tells_nothing(vault: KmsVault) -> None:
    assert "hunter2" not in vault.seal(b"hunter2", OF)


def test_it_is_opened_only_for_what_it_was_sealed_for(vault: KmsVault) -> None:
    """SEC-1: a lease's metadata is worth nothing to the next lease, nor to another unit's."""
    sealed = vault.seal(b"hunter2", OF)
    for other in ({**OF, "fence": "4"}, {**OF, "unit": "r-2"}, {}):
        with pytest.raises(ValueError, match="not sealed for this use"):
            vault.open(sealed, other)


def test_its_pieces_stay_in_their_order(vault: KmsVault) -> None:
    first, second = vault.seal(b"a" * PIECE_BYTES + b"b", OF).split(".")
    for wrong in (f"{second}.{first}", first):
        with pytest.raises(ValueError, match="not sealed for this use"):
            vault.open(wrong, OF)


def test_a_vault_that_is_away_is_not_taken_for_a_wrong_seal(vault: KmsVault) -> None:
    vault._key = "alias/none"
    with pytest.raises(ClientError):
        vault.open(vault.seal(b"x", OF), OF)
