"""The site's own function or command: how it is asked, and what it may answer.

    {"do": "clean", "id", "name", "unit", "well"}   -> {"state": "clean", "checked"}
    {"do": "check", "id", "name", "unit", "well"}   -> {"state": "checked", "digest", "parts"?}
                                                     | {"state": "not-yet", "after"?, "reason"?}
                                                     | {"state": "failed", "reason"}

It answers within SECONDS, and then runs no more: who takes over from a function of ours that died waits for longer.
What takes longer is begun, and asked for again with the same id.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from penstock.kernel.errors import Misconfigured, RateLimited, Unknown
from penstock.toml.checks import clip

SECONDS = 60
ANSWER_BYTES = 64 * 1024
WORDS = 300

Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]

WRONG = ("AccessDeniedException", "ResourceNotFoundException", "InvalidParameterValueException", "ValidationException")
SLOW = ("TooManyRequestsException", "ThrottlingException", "Throttling")


def function(name: str, client: Callable[[], Any] | None = None) -> Ask:
    """A function of the site's. Its permission is the deployment's: `-c accounts_lambdas=ARN`."""

    def ask(request: Mapping[str, Any]) -> Mapping[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            service = client() if client else _client()
            _check_timeout(name, service)
            reply = service.invoke(FunctionName=name, Payload=json.dumps(request).encode())
            return _table(_result(name, reply), name)
        except ClientError as error:
            raise _refused(name, error.response.get("Error", {}).get("Code", "")) from error
        except BotoCoreError as error:
            raise Unknown(f"no answer from {name}: {type(error).__name__}", "no-answer") from error

    return ask


def _client() -> Any:
    import boto3
    from botocore.config import Config

    config = Config(connect_timeout=5, read_timeout=SECONDS + 5, retries={"total_max_attempts": 1})
    return boto3.client("lambda", config=config)  # one try: a second call could run beside the first


def _check_timeout(name: str, service: Any) -> None:
    """What may run for longer could clean what is leased again."""
    seconds = service.get_function_configuration(FunctionName=name).get("Timeout")
    if not isinstance(seconds, int) or seconds > SECONDS:
        raise Misconfigured(f"{name} may run for {seconds} s; {SECONDS} at most: let it begin what takes longer")


def _result(name: str, reply: Mapping[str, Any]) -> bytes:
    said: bytes = reply["Payload"].read(ANSWER_BYTES + 1)
    if reply.get("FunctionError"):
        with suppress(ValueError, AttributeError):
            raise Unknown(f"{name} failed: {clip(str(json.loads(said).get('errorType')), WORDS)}", "function-error")
        raise Unknown(f"{name} failed", "function-error")
    return said


def _refused(name: str, code: str) -> Exception:
    if code in SLOW:
        return RateLimited(f"{name}: {code}", 30)
    if code in WRONG:
        return Misconfigured(f"{name}: {code}; deploy with -c accounts_lambdas=ARN")
    return Unknown(f"{name}: {code}", code)


def command(words: Sequence[str], seconds: float = SECONDS) -> Ask:
    """A command beside the local cloud: it reads the request, writes the answer, and has nothing of our environment."""
    name = words[0]

    def ask(request: Mapping[str, Any]) -> Mapping[str, Any]:
        with tempfile.TemporaryFile() as out:
            try:
                _run(words, json.dumps(request).encode(), out, seconds)
            except OSError as error:
                raise Misconfigured(f"{name} cannot be run: {error.strerror}") from error
            out.seek(0)
            return _table(out.read(ANSWER_BYTES + 1), name)

    return ask


def _run(words: Sequence[str], request: bytes, out: Any, seconds: float) -> None:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL, env=environment, start_new_session=True
    ) as process:
        try:
            process.communicate(request, seconds)
        except subprocess.TimeoutExpired as error:
            raise Unknown(f"{words[0]} took more than {seconds:.0f} s", "too-slow") from error
        finally:
            with suppress(ProcessLookupError):  # also what it has left
                os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            raise Unknown(f"{words[0]} ended with {process.returncode}", "exit")


def _table(said: bytes, name: str) -> Mapping[str, Any]:
    """The answer. Raises Misconfigured for what is none."""
    if len(said) > ANSWER_BYTES:
        raise Misconfigured(f"{name} answers with more than {ANSWER_BYTES} bytes")
    try:
        found = json.loads(said)
    except (ValueError, RecursionError) as error:
        raise Misconfigured(f"{name} answers with what is no JSON") from error
    if not isinstance(found, dict):
        raise Misconfigured(f"{name} answers with what is no JSON object")
    return found
