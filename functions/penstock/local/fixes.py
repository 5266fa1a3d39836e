"""Corrects what MiniStack 1.5.33 does differently from AWS: one function per difference, named after it.

Each fix replaces one name inside the emulator, when the host starts and before a request is served. A new version
of the emulator means reading this file again: `tests/local/test_fixes.py` fails when a fix is no longer needed
or no longer takes. What is different and not put right is listed in docs/decisions/0006-local-cloud-on-ministack.md.
"""

from __future__ import annotations

import contextvars
import json
import os
import time
from collections.abc import Callable
from functools import lru_cache, wraps
from types import ModuleType
from typing import Any

from ministack.core import iam_actions, lambda_runtime
from ministack.services import dynamodb, iam, lambda_svc, stepfunctions
from ministack.services.cloudformation import provisioners

from penstock.local import lambda_processes

PROCESSES = max(2, os.cpu_count() or 2)
"""Most processes per function."""

TOKENS = 10_000
"""How many tasks are known by their tokens, after they were answered too."""

_machines: dict[str, str] = {}
"""The state machines of tasks, by token."""

DRIVING = 24
"""Most processes of a function that calls drivers, and messages that it gets at once. One that waits costs no CPU."""


def apply() -> None:
    """All of them."""
    a_flow_starts_after_150_ms()
    a_map_goes_on_after_a_failed_item()
    a_cold_start_unzips_and_compiles_again()
    functions_run_without_bound()
    a_condition_is_parsed_again_for_each_row()
    a_queue_wakes_five_functions_at_most()
    a_queue_wakes_no_more_functions_than_may_run()
    a_secret_is_referred_to_by_name()
    an_open_flow_is_refused_when_it_is_started_again()
    an_answer_to_a_task_names_no_machine()
    a_closed_task_does_not_exist()
    a_request_has_its_cookies_among_its_headers()
    no_condition_knows_the_keys_of_rows()
    no_condition_knows_the_boundary_of_a_role()
    a_list_of_alarms_names_no_alarm()


def a_flow_starts_after_150_ms() -> None:
    """StartExecution sleeps so that tests see RUNNING first. A job would wait for it each time."""

    class Clock(ModuleType):
        def __getattr__(self, name: str) -> Any:
            return getattr(time, name)

        @staticmethod
        def sleep(seconds: float) -> None:
            time.sleep(0 if seconds == 0.15 else seconds)

    stepfunctions.time = Clock("time")


def a_map_goes_on_after_a_failed_item() -> None:
    """A serial Map tries the items after a failed one, and those of a stopped execution. AWS does not.

    Our Map acquires resources, so the rest would be acquired for an attempt that has already failed.
    """
    failed: contextvars.ContextVar[list[Exception] | None] = contextvars.ContextVar("failed", default=None)
    run_items, run_item = stepfunctions._run_map_items, stepfunctions._run_sub_machine

    @wraps(run_items)
    def serially(state: dict[str, Any], *rest: Any) -> Any:
        marker = failed.set([] if state.get("MaxConcurrency") == 1 else None)
        try:
            return run_items(state, *rest)
        finally:
            failed.reset(marker)

    @wraps(run_item)
    def unless_failed(states: Any, start: Any, given: Any, execution: dict[str, Any], context: Any) -> Any:
        before = failed.get()
        if before:
            raise before[0]
        if execution["status"] != "RUNNING":
            raise stepfunctions._ExecutionError("States.Aborted", "the execution was stopped")
        try:
            return run_item(states, start, given, execution, context)
        except Exception as error:
            if before is not None:
                before.append(error)
            raise

    stepfunctions._run_map_items, stepfunctions._run_sub_machine = serially, unless_failed


def a_cold_start_unzips_and_compiles_again() -> None:
    """Each process gets its own unzipped copy, hence no compiled modules, and imports all anew. Ours are forked."""
    lambda_runtime.Worker._spawn = lambda_processes.spawn


def functions_run_without_bound() -> None:
    """A burst of messages starts as many processes as there are batches. A machine has less room than a region."""
    lambda_svc.acquire_worker = _waiting(lambda_runtime.acquire_worker)


def a_condition_is_parsed_again_for_each_row() -> None:
    """A query of a queue of a thousand parses its condition as often, and a site has few conditions."""
    dynamodb._tokenize = lru_cache(dynamodb._tokenize)
    dynamodb._condition_syntax_error = lru_cache(dynamodb._condition_syntax_error)


def a_queue_wakes_five_functions_at_most() -> None:
    """AWS begins with five at once, and adds up to 300 a minute. Here the sixth message would wait for a slow driver.

    Source: AWS Lambda developer guide, "Configuring scaling behavior for SQS event source mappings".
    """
    lambda_svc._ESM_SQS_DEFAULT_CONCURRENCY = DRIVING


def a_queue_wakes_no_more_functions_than_may_run() -> None:
    """A mapping may wake hundreds. Here each would wait in a thread for one of few processes, and slow down all."""
    allowed = lambda_svc._sqs_esm_concurrency

    @wraps(allowed)
    def bounded(mapping: Any, function: Any, config: dict[str, Any], *queue: Any) -> int:
        return min(int(allowed(mapping, function, config, *queue)), _processes(str(config["FunctionName"])))

    lambda_svc._sqs_esm_concurrency = bounded


def _processes(function: str) -> int:
    return DRIVING if function.endswith(("-factory", "-well")) else PROCESSES


def _waiting(acquire: Callable[..., tuple[Any, str]]) -> Callable[..., tuple[Any, str]]:
    """Wait for a free process, where the emulator would throttle."""

    @wraps(acquire)
    def wait(*args: Any, **kwargs: Any) -> tuple[Any, str]:
        bound = _processes(str(args[0]))
        while True:
            worker, why = acquire(*args, **{"max_concurrency": bound, **kwargs})
            if worker is not None or why != "func_cap":
                return worker, why
            time.sleep(0.005)

    return wait


def a_secret_is_referred_to_by_name() -> None:
    """In a template, Ref of a secret is its ARN. By name, no policy that names the secret matches."""
    steps = provisioners._RESOURCE_HANDLERS["AWS::SecretsManager::Secret"]
    create = steps["create"]

    @wraps(create)
    def by_arn(*args: Any) -> tuple[str, dict[str, str]]:
        _, attributes = create(*args)
        return attributes["Arn"], attributes

    steps["create"] = by_arn


def an_open_flow_is_refused_when_it_is_started_again() -> None:
    """AWS answers StartExecution with success while an execution of that name and input is open.

    It refuses the name only with another input, or when the execution is over. Source: Step Functions API reference.
    """
    start = stepfunctions._start_execution

    @wraps(start)
    def again(data: dict[str, Any]) -> Any:
        machine = str(data.get("stateMachineArn", ""))
        known = stepfunctions._executions.get(f"{machine.replace(':stateMachine:', ':execution:')}:{data.get('name')}")
        if known and known["status"] == "RUNNING" and known["input"] == data.get("input", "{}"):
            return stepfunctions.json_response({"executionArn": known["executionArn"], "startDate": known["startDate"]})
        return start(data)

    stepfunctions._start_execution = again


def an_answer_to_a_task_names_no_machine() -> None:
    """AWS checks SendTask… against the state machine of the token, the emulator against "*", which we grant nobody.

    That of an answered task too: who answers it again may do so, and is told that it is closed.
    """
    machine: contextvars.ContextVar[str] = contextvars.ContextVar("machine")
    execute, park = stepfunctions._execute_task, stepfunctions._invoke_with_callback
    extract = iam_actions.extract_resource_arn

    @wraps(execute)
    def knowing(state: Any, given: Any, execution: dict[str, Any], context: Any) -> Any:
        machine.set(execution["stateMachineArn"])
        return execute(state, given, execution, context)

    @wraps(park)
    def owned(resource: Any, given: Any, token: str, state: Any) -> Any:
        _machines[token] = machine.get()
        while len(_machines) > TOKENS:
            del _machines[next(iter(_machines))]
        return park(resource, given, token, state)

    @wraps(extract)
    def with_machine(service: str, method: str, path: str, headers: Any, body: bytes, *rest: Any) -> str:
        if service == "states" and b'"taskToken"' in body:
            return _machines.get(json.loads(body)["taskToken"]) or next(reversed(_machines.values()), "*")
        return str(extract(service, method, path, headers, body, *rest))

    stepfunctions._execute_task, stepfunctions._invoke_with_callback = knowing, owned
    iam_actions.extract_resource_arn = with_machine


def no_condition_knows_the_keys_of_rows() -> None:
    """AWS gives a policy `dynamodb:LeadingKeys`, the partition keys that a request names; the emulator does not.

    Only for requests that name items: a Query under such a condition stays refused.
    Source: Amazon DynamoDB Developer Guide, "Using IAM policy conditions for fine-grained access control".
    """
    context = iam_actions.dynamodb_service_context

    @wraps(context)
    def with_keys(body: bytes) -> dict[str, Any]:
        known: dict[str, Any] = context(body)
        keys = _partition_keys(json.loads(body or b"{}"))
        return known | ({"dynamodb:LeadingKeys": keys} if keys else {})

    iam_actions.dynamodb_service_context = with_keys


def _partition_keys(request: Any) -> list[str]:
    writes = [write for each in request.get("TransactItems", [request]) for write in (each, *each.values())]
    items = [write.get("Key") or write.get("Item") for write in writes if isinstance(write, dict)]
    return [item["pk"]["S"] for item in items if item and "pk" in item]


def no_condition_knows_the_boundary_of_a_role() -> None:
    """AWS gives a policy `iam:PermissionsBoundary`: that of the role that a request changes. The emulator does not.

    Source: IAM User Guide, "IAM and AWS STS condition context keys".
    """
    context = iam_actions.request_tag_context

    @wraps(context)
    def with_boundary(service: str, action: str, body: bytes, params: dict[str, Any]) -> dict[str, Any]:
        known: dict[str, Any] = context(service, action, body, params)
        named = params.get("RoleName") if service == "iam" else None
        role = iam._roles.get(named[0] if isinstance(named, list) else named) if named else None
        boundary = (role or {}).get("PermissionsBoundary")
        return known | ({"iam:permissionsboundary": boundary, "iam:PermissionsBoundary": boundary} if boundary else {})

    iam_actions.request_tag_context = with_boundary


def a_list_of_alarms_names_no_alarm() -> None:
    """AWS checks DescribeAlarms for a prefix against `alarm:*` of the account, the emulator against "*".

    Source: messages of refusals that others have published name that resource. AWS does not document it.
    """
    extract = iam_actions.extract_resource_arn

    @wraps(extract)
    def with_alarms(service: str, method: str, path: str, headers: Any, body: bytes, *rest: Any) -> str:
        if service == "monitoring" and b"AlarmNamePrefix" in body:
            _, region, account = rest
            return f"arn:aws:cloudwatch:{region}:{account}:alarm:*"
        return str(extract(service, method, path, headers, body, *rest))

    iam_actions.extract_resource_arn = with_alarms


def a_closed_task_does_not_exist() -> None:
    """AWS answers TaskTimedOut for a task that is closed, InvalidToken for what is no token. Here both do not exist.

    Source: Step Functions API reference, SendTaskSuccess, SendTaskFailure, SendTaskHeartbeat.
    """
    for name in ("_send_task_success", "_send_task_failure", "_send_task_heartbeat"):
        setattr(stepfunctions, name, _unless_closed(getattr(stepfunctions, name)))


def _unless_closed(send: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    @wraps(send)
    def checked(data: dict[str, Any]) -> Any:
        token = str(data.get("taskToken"))
        task = stepfunctions._task_tokens.get(token)
        if task is None and token not in _machines:
            return stepfunctions.error_response_json("InvalidToken", f"Invalid Token: '{token[:20]}'", 400)
        if task is None or task["event"].is_set():
            return stepfunctions.error_response_json("TaskTimedOut", "Task Timed Out: 'Provided task is closed'", 400)
        return send(data)

    return checked


def a_request_has_its_cookies_among_its_headers() -> None:
    """An HTTP API gives a function the cookies apart, one by one, and not as a header. The emulator does not.

    Source: Amazon API Gateway Developer Guide, "Create AWS Lambda proxy integrations for HTTP APIs".
    """
    execute = lambda_svc._execute_function_with_config_scope

    @wraps(execute)
    def with_cookies(record: Any, event: Any, *rest: Any, **more: Any) -> Any:
        if isinstance(event, dict) and event.get("version") == "2.0" and "cookie" in event.get("headers", {}):
            headers = {name: value for name, value in event["headers"].items() if name != "cookie"}
            sent = [each.strip() for each in event["headers"]["cookie"].split(";")]
            event = {**event, "headers": headers, "cookies": [each for each in sent if each]}
        return execute(record, event, *rest, **more)

    lambda_svc._execute_function_with_config_scope = with_cookies
