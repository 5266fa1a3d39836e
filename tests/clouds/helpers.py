"""A factory at the fake, and an order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.libcloud.factory import SITE, LibcloudFactory
from penstock.kernel import rows
from penstock.ports import NotYet, Order
from tests.clouds.fake import Books

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WORKER, OTHER = (f"w-{rows.ulid(NOW, bytes([*bytes(9), number]))}" for number in range(2))
HERE = "Penstock.eu-west-1"
KEY = "k" * 64
SETTINGS: dict[str, Any] = {
    "provider": "dummy",
    "sizes": ["Small", "Medium"],
    "image": "2",
    "locations": ["London Loft", "3"],
    "boot_argument": "ex_userdata",
    "tags_argument": "ex_metadata",
}


def factory(books: Books, name: str = "lab", site: str = HERE, **more: Any) -> LibcloudFactory:
    """A driver that shares nothing with others but the cloud."""
    return LibcloudFactory({**SETTINGS, **more}, {SITE: site, MAKER: name, "CLOUD_KEY": "hunter2hunter2"}, books.opened)


def order(worker: str = WORKER, **more: Any) -> Order:
    return Order(worker, "linux", "1", url="https://penstock.example", key=KEY, **more)


def clean(driver: LibcloudFactory, worker: str = WORKER) -> CleanProof:
    """Clean until it is clean, long after it was ordered."""
    for _ in range(50):
        done = driver.destroy(worker, NOW + timedelta(hours=1))
        if isinstance(done, CleanProof):
            return done
        assert isinstance(done, NotYet)
    raise AssertionError("it does not get clean")
