"""The other ports in memory, and the site that moves messages and flows along."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from penstock import agentfile
from penstock.domain.artifacts import volumes
from penstock.domain.artifacts.content import Content, announced
from penstock.domain.artifacts.volumes import Part
from penstock.domain.units.units import CleanProof
from penstock.domain.users.oidc import PublicKey
from penstock.drivers import Registry
from penstock.kernel import rows
from penstock.kernel.errors import Unreached
from penstock.ports import AgentFile, Grant, NotYet, Order, Ready, Stored
from penstock.system import System
from penstock.testing.metrics import RecordedMetrics
from penstock.testing.store import MemoryStore
from penstock.usecases import sweep
from penstock.usecases.github import steps
from penstock.usecases.jobs import flow, prerequisites, settle
from penstock.usecases.pools import resize, scheduler, serving
from penstock.usecases.units import advance, console
from penstock.usecases.workers import power

START = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """A clock that is moved by hand, and dice with a seed."""

    __test__ = False

    def __init__(self, seed: int = 0) -> None:
        self.dice = random.Random(seed)
        self.time = START

    def now(self) -> datetime:
        return self.time

    def ulid(self) -> str:
        self.time += timedelta(milliseconds=1)
        return rows.ulid(self.time, self.dice.randbytes(rows.RANDOM_BYTES))

    def secret(self) -> str:
        return f"{self.dice.getrandbits(256):064x}"

    def draw(self, count: int) -> int:
        """Always the first, so that a test knows which slot it gets."""
        del count
        return 0

    def pause(self, tries: int) -> None:
        del tries

    def limit(self, seconds: float) -> AbstractContextManager[None]:
        del seconds
        return nullcontext()


@dataclass
class MemoryQueues:
    """Messages in order, each with the time before which it is not delivered."""

    world: ManualClock
    messages: deque[tuple[datetime, str, dict[str, Any]]] = field(default_factory=deque)

    def schedule(self, message: Mapping[str, Any]) -> None:
        self.messages.append((self.world.now(), "schedule", json.loads(json.dumps(message))))

    def serve(self, names: Sequence[str], group: str) -> None:
        self.schedule({"do": "serve", "pools": names, "group": group})

    def advance(self, unit: str, is_worker: bool, after: int = 0, maker: str = "") -> None:
        due = self.world.now() + timedelta(seconds=after)
        self.messages.append((due, "factory" if is_worker else "well", {"unit": unit}))

    def console(self, unit: str, by: str, maker: str = "") -> None:
        self.messages.append((self.world.now(), "factory", {"unit": unit, "do": "console", "by": by}))

    def power(self, host: str, after: int = 0, maker: str = "") -> None:
        due = self.world.now() + timedelta(seconds=after)
        self.messages.append((due, "factory", {"do": "power", "host": host}))

    def sweep(self, message: Mapping[str, Any]) -> None:
        self.messages.append((self.world.now(), "sweep", json.loads(json.dumps(message))))


@dataclass
class Execution:
    """One flow: the steps it has still to take, and the token that it waits with."""

    job: str
    attempt: int
    steps: list[dict[str, Any]]
    token: str | None = None
    ended: bool = False


class MemoryFlows:
    """Walks the steps of attempt.asl.json: resources one by one, then the worker; and settle after a failure."""

    def __init__(self, queues: MemoryQueues) -> None:
        self.queues = queues
        self.executions: dict[tuple[str, int], Execution] = {}
        self.settling: deque[tuple[str, int, str | None, str | None]] = deque()
        self.tokens: dict[str, Execution] = {}

    def start(self, job: str, attempt: int, steps: Sequence[int]) -> None:
        if (job, attempt) in self.executions:  # AWS answers that it is started while it is open, and refuses it after
            return
        flow = Execution(job, attempt, [{"do": "acquire", "step": step} for step in (*steps, 0)])
        self.executions[job, attempt] = flow
        self._step(flow)

    def stop(self, job: str, attempt: int) -> None:
        flow = self.executions.get((job, attempt))
        if flow:
            flow.ended, flow.token, flow.steps = True, None, []

    def _step(self, flow: Execution) -> None:
        if not flow.steps:
            flow.ended, flow.token = True, None
            return
        token = f"token-{flow.job}-{flow.attempt}-{len(flow.steps)}"
        flow.token = token
        self.tokens[token] = flow
        given = {"job": flow.job, "attempt": flow.attempt, "token": token}
        self.queues.schedule(flow.steps.pop(0) | given)

    def _end(self, flow: Execution, error: str, cause: str) -> None:
        flow.ended, flow.token = True, None
        self.settling.append((flow.job, flow.attempt, error, cause))

    def succeed(self, token: str) -> bool:
        flow = self.tokens.get(token)
        if flow is None or flow.token != token:
            return False
        self._step(flow)
        return True

    def fail(self, token: str, error: str, cause: str) -> None:
        flow = self.tokens.get(token)
        if flow and flow.token == token:
            self._end(flow, error, cause)

    def ended(self) -> Iterable[tuple[str, int, str]]:
        return ()


class MemoryObjects:
    """Objects in a dict; `times` are those of objects that were not stored when the clock began."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.times: dict[str, datetime] = {}
        self.begun: dict[str, dict[int, bytes]] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.composites: dict[str, str] = {}

    def upload(self, name: str, size: int, sha256: str) -> Grant:
        return Grant("PUT", f"memory://{name}")

    def parts(self, name: str, wanted: Sequence[Part]) -> Sequence[Grant | None]:
        there = self.begun.setdefault(name, {})
        return [None if part.number in there else Grant("PUT", f"memory://{name}#{part.number}") for part in wanted]

    def join(self, name: str, count: int, composite: str) -> None:
        there = self.begun.get(name, {})
        digests = [hashlib.sha256(there[number]).hexdigest() for number in sorted(there)]
        if len(there) == count and volumes.composite(digests) == composite:
            self.objects[name] = b"".join(there[number] for number in sorted(there))
            self.composites[name] = composite
            self.abandon(name)

    def abandon(self, name: str) -> None:
        self.begun.pop(name, None)

    def download(self, name: str, seconds: int, filename: str) -> Grant:
        return Grant("GET", f"memory://{name}")

    def size(self, name: str) -> int | None:
        return len(self.objects[name]) if name in self.objects else None

    def content(self, name: str) -> Content | None:
        if name not in self.objects:
            return None
        data, composite = self.objects[name], self.composites.get(name, "")
        return announced(len(data), hashlib.sha256(data).hexdigest(), composite)

    def store(self, name: str, content: bytes) -> None:
        self.objects[name] = content

    def begin(self, name: str) -> str:
        upload = f"upload-{len(self.uploads) + 1}"
        self.uploads[upload] = {}
        return upload

    def part(self, name: str, upload: str, number: int, content: bytes) -> str | None:
        if upload not in self.uploads:
            return None
        self.uploads[upload][number] = content
        return hashlib.md5(content).hexdigest()

    def complete(self, name: str, upload: str, tags: Sequence[str]) -> None:
        if upload in self.uploads:
            parts = self.uploads.pop(upload)
            assert tags == [hashlib.md5(parts[number]).hexdigest() for number in sorted(parts)]
            self.objects[name] = b"".join(parts[number] for number in sorted(parts))

    def read(self, name: str, start: int, size: int) -> bytes:
        return self.objects.get(name, b"")[start : start + size]

    def delete(self, name: str) -> None:
        self.objects.pop(name, None)

    def list(self, prefix: str, after: str, limit: int) -> Sequence[Stored]:
        names = sorted(name for name in self.objects if name.startswith(prefix) and name > after)
        return [Stored(name, len(self.objects[name]), self.times.get(name, START)) for name in names[:limit]]


class MemoryVault:
    """Does not encrypt, but opens a secret only with the same `of`."""

    def seal(self, secret: bytes, of: Mapping[str, str]) -> str:
        return json.dumps([base64.b64encode(secret).decode(), dict(of)])

    def open(self, sealed: str, of: Mapping[str, str]) -> bytes:
        secret, as_what = json.loads(sealed)
        if as_what != of:
            raise ValueError("the secret was not sealed for this use")
        return base64.b64decode(secret)


@cache
def pair() -> rsa.RSAPrivateKey:
    """One pair of keys for all twins: to make one takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def curve() -> ec.EllipticCurvePrivateKey:
    """One key for the statements of all twins."""
    return ec.generate_private_key(ec.SECP256R1())


class MemoryAttestor:
    """Signs statements with a key of its own."""

    def kid(self) -> str:
        return "key-2"

    def sign(self, message: bytes) -> bytes:
        return curve().sign(message, ec.ECDSA(hashes.SHA256()))

    def public_key(self) -> bytes:
        return curve().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


class MemorySigner:
    """Signs with a key of its own."""

    def __init__(self) -> None:
        self.signed: list[bytes] = []

    def kid(self) -> str:
        return "key-1"

    def sign(self, message: bytes) -> bytes:
        self.signed.append(message)
        return pair().sign(message, padding.PKCS1v15(), hashes.SHA256())

    def keys(self) -> Sequence[PublicKey]:
        numbers = pair().public_key().public_numbers()
        return [PublicKey("key-1", numbers.n, numbers.e)]


class ScriptedDriver:
    """A factory whose machines do nothing until a test lets their agent say hello; or a well that does what is said."""

    def __init__(self) -> None:
        self.made: dict[str, Order] = {}
        self.cleaned: list[str] = []
        self.says: list[BaseException | NotYet] = []
        self.stuck: Exception | NotYet | None = None
        """What comes of every call that destroys, while it is set."""

    def create(self, order: Order) -> Ready | NotYet:
        said = self._said()
        if said is None:
            self.made[order.id] = order
        return said or Ready({"id": order.id})

    def clean(self, unit: str, now: datetime) -> CleanProof | NotYet:
        said = self._said()
        if said is None:
            self.cleaned.append(unit)
        return said or CleanProof(by="hand", time=now, checked=unit)

    def _said(self) -> NotYet | None:
        said = self.says.pop(0) if self.says else None
        if isinstance(said, BaseException):
            raise said
        return said

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        if isinstance(self.stuck, BaseException):
            raise self.stuck
        if self.stuck:
            return self.stuck
        self.made.pop(unit, None)
        return CleanProof(by="hand", time=now, checked=unit)

    def list(self) -> Iterable[str]:
        return list(self.made)


class TestDrivers(Registry):
    """The real drivers, the factory `hand` and the well `hand`; both keep units for the next lease."""

    __test__ = False

    def __init__(self) -> None:
        super().__init__({})
        self.hand, self.basin = ScriptedDriver(), ScriptedDriver()
        self.quarantining = False

    def factory(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Any:
        return self.hand if driver == "hand" else super().factory(driver, settings, name)

    def well(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Any:
        return self.basin if driver == "hand" else super().well(driver, settings, name)

    def reusable(self, kind: str, driver: str) -> bool:
        return driver == "hand" or super().reusable(kind, driver)

    def quarantines(self, kind: str, driver: str) -> bool:
        return self.quarantining if driver == "hand" else super().quarantines(kind, driver)

    def objections(self, kind: str, driver: str, options: Mapping[str, Any], *told: Any) -> Sequence[str]:
        return [] if driver == "hand" else super().objections(kind, driver, options, *told)

    def complaints(self, kind: str, driver: str, settings: Mapping[str, Any]) -> Sequence[str]:
        return [] if driver == "hand" else super().complaints(kind, driver, settings)


@dataclass
class Watched:
    """What tests say that the alarms or the dead-letter queues are; or that they cannot be known."""

    found: Sequence[Any] = ()
    fails: str = ""

    def read(self) -> Sequence[Any]:
        if self.fails:
            raise Unreached(self.fails)
        return self.found


class Twin:
    """The whole system. `run` delivers what is due until nothing is."""

    def __init__(self, seed: int = 0) -> None:
        self.world = ManualClock(seed)
        self.store = MemoryStore(knows_kinds=True)
        self.queues = MemoryQueues(self.world)
        self.flows = MemoryFlows(self.queues)
        self.objects = MemoryObjects()
        self.drivers = TestDrivers()
        self.metrics = RecordedMetrics()
        self.signer = MemorySigner()
        self.alarms, self.dead_letters = Watched(), Watched()
        self.on = System(
            self.store,
            self.queues,
            self.flows,
            self.objects,
            self.drivers,
            self.world,
            MemoryVault(),
            "http://here",
            lambda: hashlib.sha256(b"key").hexdigest(),
            self.metrics,
            self.signer,
            MemoryAttestor(),
            agent_file=AgentFile(self.objects, f"{agentfile.digest()}.pyz"),
            front_key=lambda: "front",
            alarms=self.alarms,
            dead_letters=self.dead_letters,
        )

    def run(self) -> None:
        """Deliver messages and settle flows until nothing is due."""
        for _ in range(10_000):
            if self.flows.settling:
                self.settle(*self.flows.settling.popleft())
            elif not self.deliver():
                return
        raise AssertionError("the messages never end")

    def deliver(self) -> bool:
        """Deliver the first message that is due. False when none is."""
        now = self.world.now()
        for position, (due, queue, message) in enumerate(self.queues.messages):
            if due <= now:
                del self.queues.messages[position]
                self.take(queue, message)
                return True
        return False

    def settle(self, job: str, attempt: int, error: str | None, cause: str | None) -> None:
        """Do what a handler does with the end of a flow."""
        settle.settle(self.on, job, attempt, error, cause, unbegun=True)

    def take(self, queue: str, message: dict[str, Any]) -> None:
        """Do what a handler does with a message."""
        if queue == "github":
            steps.step(self.on, message)
            return
        if queue == "sweep":
            sweep.go_on(self.on, message, self.world.now() + sweep.WITHIN)
            return
        if message.get("do") == "console":
            console.read(self.on, message["unit"], message["by"])
            return
        if message.get("do") == "power":
            power.step(self.on, message["host"])
            return
        if queue != "schedule":
            advance.advance(self.on, message["unit"])
            return
        given = dict(message)
        step = given.pop("do")
        if step == "acquire":
            scheduler.acquire(self.on, given["job"], given["attempt"], given["step"], given["token"])
        else:
            take: dict[str, Callable[..., object]] = {
                "serve": serving.serve,
                "granted": serving.granted,
                "resize": resize.resize,
                "start": flow.start,
                "judge": prerequisites.judge,
                "wake": settle.notify_dependents,
                "github": lambda on, hint: on.forge.enqueue(hint),
            }
            take[step](self.on, *given.values())

    def pass_time(self, seconds: float) -> None:
        """Move the clock."""
        self.world.time += timedelta(seconds=seconds)
