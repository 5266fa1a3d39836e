"""The cleaner: a function or command of the site. These are its requests and answers:

    {"do": "clean", "id", "name", "unit", "well"}   -> {"state": "clean", "checked"}
    {"do": "check", "id", "name", "unit", "well"}   -> {"state": "checked", "digest", "parts"?}
                                                     | {"state": "not-yet", "after"?, "reason"?}
                                                     | {"state": "failed", "reason"}

It must answer within SECONDS and then stop, because another call of the well's function may follow. If its work takes
longer, it begins it and answers `not-yet`; the well repeats the request with the same id.
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
    """A Lambda function of the site. Deploy with `-c accounts_lambdas=ARN` to permit the call."""

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
    return boto3.client("lambda", config=config)  # no retry: a second call could run beside the first


def _check_timeout(name: str, service: Any) -> None:
    """Refuse a function with a longer timeout: it could still be cleaning when the thing is leased again."""
    seconds = service.get_function_configuration(FunctionName=name).get("Timeout")
    if not isinstance(seconds, int) or seconds > SECONDS:
        raise Misconfigured(f"the function {name} has a timeout of {seconds} s; set {SECONDS} s at most")


def _result(name: str, reply: Mapping[str, Any]) -> bytes:
    answer: bytes = reply["Payload"].read(ANSWER_BYTES + 1)
    if reply.get("FunctionError"):
        with suppress(ValueError, AttributeError):
            raise Unknown(f"{name} failed: {clip(str(json.loads(answer).get('errorType')), WORDS)}", "function-error")
        raise Unknown(f"{name} failed", "function-error")
    return answer


def _refused(name: str, code: str) -> Exception:
    if code in SLOW:
        return RateLimited(f"{name}: {code}", 30)
    if code in WRONG:
        return Misconfigured(f"{name}: {code}; deploy with -c accounts_lambdas=ARN")
    return Unknown(f"{name}: {code}", code)


def command(words: Sequence[str], seconds: float = SECONDS) -> Ask:
    """A command on the machine of the local cloud: reads the request from stdin, and writes the answer to stdout."""
    name = words[0]

    def ask(request: Mapping[str, Any]) -> Mapping[str, Any]:
        with tempfile.TemporaryFile() as out:
            try:
                _run(words, json.dumps(request).encode(), out, seconds)
            except OSError as error:
                raise Misconfigured(f"the command {name} cannot be run: {error.strerror}") from error
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
            raise Unknown(f"the command {words[0]} took more than {seconds:.0f} s", "too-slow") from error
        finally:
            with suppress(ProcessLookupError):  # also processes that it started
                os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            raise Unknown(f"the command {words[0]} exited with status {process.returncode}", "exit")


def _table(answer: bytes, name: str) -> Mapping[str, Any]:
    """An answer of the cleaner. Raises Misconfigured if it is not a JSON object, or too long."""
    if len(answer) > ANSWER_BYTES:
        raise Misconfigured(f"the answer of {name} has more than {ANSWER_BYTES} bytes")
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise Misconfigured(f"the answer of {name} is not JSON") from error
    if not isinstance(found, dict):
        raise Misconfigured(f"the answer of {name} is not a JSON object")
    return found
