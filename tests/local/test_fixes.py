"""Each fix of the emulator takes. What would happen without it is in penstock/local/fixes.py."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError
from ministack.services import dynamodb, lambda_svc, stepfunctions

from penstock.local import fixes
from penstock.local.fixes import DRIVING, PROCESSES
from tests.local.conftest import ANYTHING, ROLE, TRUST, Host, policy

WAIT_SECONDS = 240  # for machines that do much else


def run(host: Host, name: str, definition: dict[str, Any], given: dict[str, Any]) -> str:
    """Start a new state machine and return its execution."""
    flows = host.client("stepfunctions")
    made = flows.create_state_machine(name=name, definition=json.dumps(definition), roleArn=ROLE)
    started = flows.start_execution(stateMachineArn=made["stateMachineArn"], input=json.dumps(given))
    return str(started["executionArn"])


def ended(host: Host, execution: str) -> dict[str, Any]:
    """Wait for an execution and describe it."""
    flows = host.client("stepfunctions")
    until = time.monotonic() + WAIT_SECONDS
    while (found := flows.describe_execution(executionArn=execution))["status"] == "RUNNING":
        assert time.monotonic() < until, "the execution does not end"
        time.sleep(0.01)
    return dict(found)


def parking_map(queue: str) -> dict[str, Any]:
    """A serial Map that parks each item with a message to a queue."""
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Parameters": {"QueueUrl": queue, "MessageBody": {"token.$": "$$.Task.Token"}},
        "End": True,
    }
    items = {"StartAt": "Park", "States": {"Park": task}}
    each = {"Type": "Map", "ItemsPath": "$.items", "MaxConcurrency": 1, "ItemProcessor": items, "End": True}
    return {"StartAt": "Each", "States": {"Each": each}}


def token(host: Host, queue: str) -> str | None:
    """The token in the next message, or None if none comes in a second."""
    found = host.client("sqs").receive_message(QueueUrl=queue, WaitTimeSeconds=1).get("Messages", [])
    return json.loads(found[0]["Body"])["token"] if found else None


class Clock:
    """Time that passes only in pauses. All else is as in the module `time`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


def test_a_flow_starts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator pauses once before a flow, and with the fix for no time."""
    clock = Clock()
    monkeypatch.setattr(fixes, "time", clock)
    monkeypatch.setattr(stepfunctions, "time", time)
    fixes.a_flow_starts_after_150_ms()
    execution: dict[str, Any] = {"executionArn": "arn", "name": "one", "stateMachineArn": "deleted", "events": []}
    monkeypatch.setattr(stepfunctions, "_executions", {"arn": execution})
    stepfunctions._run_execution("arn")
    assert (execution["status"], clock.pauses) == ("FAILED", [0])


@pytest.mark.parametrize(
    ("function", "allowed", "woken"),
    [("p-schedule", 200, PROCESSES), ("p-well", 200, DRIVING), ("p-factory", 10, 10), ("p-sweep", 1, 1)],
)
def test_a_queue_wakes_no_more_functions_than_may_run(
    monkeypatch: pytest.MonkeyPatch, function: str, allowed: int, woken: int
) -> None:
    monkeypatch.setattr(lambda_svc, "_sqs_esm_concurrency", lambda_svc._sqs_esm_concurrency)
    fixes.a_queue_wakes_no_more_functions_than_may_run()
    mapping = {"ScalingConfig": {"MaximumConcurrency": allowed}}
    assert lambda_svc._sqs_esm_concurrency(mapping, {}, {"FunctionName": function}) == woken


def test_a_condition_is_parsed_once_for_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, parsed = dynamodb._tokenize, list[str]()
    monkeypatch.setattr(dynamodb, "_condition_syntax_error", dynamodb._condition_syntax_error)
    monkeypatch.setattr(dynamodb, "_tokenize", lambda condition: parsed.append(condition) or parse(condition))
    fixes.a_condition_is_parsed_again_for_each_row()
    for row in ("a", "b", "c"):
        assert dynamodb._evaluate_condition("pk = :a", {"pk": {"S": row}}, {":a": {"S": "a"}}, {}) is (row == "a")
    assert parsed == ["pk = :a"]


def test_a_flow_that_is_started_again_while_it_is_open_is_started(host: Host) -> None:
    """As AWS answers: with another input, or when it is over, the name is taken."""
    flows, queue = host.client("stepfunctions"), host.client("sqs").create_queue(QueueName="again")["QueueUrl"]
    machine = flows.create_state_machine(name="again", definition=json.dumps(parking_map(queue)), roleArn=ROLE)
    one = {"stateMachineArn": machine["stateMachineArn"], "name": "one", "input": json.dumps({"items": [1]})}
    first = flows.start_execution(**one)
    again = flows.start_execution(**one)
    assert [again[key] for key in ("executionArn", "startDate")] == [first["executionArn"], first["startDate"]]
    with pytest.raises(flows.exceptions.ExecutionAlreadyExists):
        flows.start_execution(**{**one, "input": json.dumps({"items": [2]})})
    flows.send_task_success(taskToken=token(host, queue), output="{}")
    assert token(host, queue) is None, "it was not started twice"
    assert ended(host, first["executionArn"])["status"] == "SUCCEEDED"
    with pytest.raises(flows.exceptions.ExecutionAlreadyExists):
        flows.start_execution(**one)


def test_a_serial_map_stops_at_the_first_failed_item(host: Host) -> None:
    queue = host.client("sqs").create_queue(QueueName="failing")["QueueUrl"]
    execution = run(host, "failing", parking_map(queue), {"items": [1, 2, 3]})
    host.client("stepfunctions").send_task_failure(taskToken=token(host, queue), error="No", cause="because")
    found = ended(host, execution)
    assert (found["status"], found["error"]) == ("FAILED", "No")
    assert token(host, queue) is None


def test_a_serial_map_goes_on_after_a_good_item(host: Host) -> None:
    queue = host.client("sqs").create_queue(QueueName="working")["QueueUrl"]
    execution = run(host, "working", parking_map(queue), {"items": [1, 2, 3]})
    for _ in range(3):
        host.client("stepfunctions").send_task_success(taskToken=token(host, queue), output="{}")
    assert ended(host, execution)["status"] == "SUCCEEDED"


def test_a_stopped_map_parks_no_more(host: Host) -> None:
    queue = host.client("sqs").create_queue(QueueName="stopped")["QueueUrl"]
    execution = run(host, "stopped", parking_map(queue), {"items": [1, 2]})
    parked = token(host, queue)
    flows = host.client("stepfunctions")
    flows.stop_execution(executionArn=execution)
    flows.send_task_success(taskToken=parked, output="{}")
    assert token(host, queue) is None


def test_a_log_line_is_kept(host: Host) -> None:
    host.client("logs").create_log_group(logGroupName="/aws/lambda/talking")
    host.function("talking", "def handler(event, context): print('a word')")({})
    events = host.client("logs").filter_log_events(logGroupName="/aws/lambda/talking")["events"]
    assert any("a word" in each["message"] for each in events)


def test_the_same_code_is_unzipped_once(host: Host) -> None:
    source = "def handler(event, context): return __file__"
    assert host.function("first", source)({}) == host.function("second", source)({})


def test_a_function_that_cannot_be_imported_says_why(host: Host) -> None:
    answer = host.function("broken", "import nothing_like_this")({})
    assert "nothing_like_this" in answer["errorMessage"]


def test_a_burst_of_calls_shares_few_processes(host: Host) -> None:
    source = "import os, time\ndef handler(event, context):\n    time.sleep(0.1)\n    return os.getpid()"
    call = host.function("burst", source)
    with ThreadPoolExecutor(4 * PROCESSES) as pool:
        processes = list(pool.map(call, [{}] * 4 * PROCESSES))
    assert len(set(processes)) <= PROCESSES


def test_a_function_that_calls_drivers_waits_for_few_others(host: Host) -> None:
    """All of them at the same time: each returns when the last has begun."""
    count = 4 * PROCESSES
    assert PROCESSES < count <= DRIVING
    folder = host.place.home / "begun"
    folder.mkdir()
    source = f"""
import os, pathlib, time
def handler(event, context):
    (pathlib.Path({str(folder)!r}) / str(os.getpid())).touch()
    while len(os.listdir({str(folder)!r})) < {count}:
        time.sleep(0.01)
    return os.getpid()
"""
    call = host.function("site-well", source)
    with ThreadPoolExecutor(count) as pool:
        assert len(set(pool.map(call, [{}] * count))) == count


def test_functions_see_the_hosts_environment_and_nothing_of_ours(host: Host) -> None:
    seen = host.function("seeing", "import os\ndef handler(event, context): return dict(os.environ)")({})
    assert seen["SITE_LOCAL"] == "1"
    assert seen["PENSTOCK_HOME"] == str(host.place.home)
    assert "HOME" not in seen
    assert not [name for name in seen if name.startswith("PYTEST")]


def test_a_secret_in_a_stack_is_referred_to_by_its_arn(host: Host) -> None:
    template = {
        "Resources": {"S": {"Type": "AWS::SecretsManager::Secret", "Properties": {"SecretString": "x"}}},
        "Outputs": {"Secret": {"Value": {"Ref": "S"}}},
    }
    formation = host.client("cloudformation")
    formation.create_stack(StackName="secret", TemplateBody=json.dumps(template))
    formation.get_waiter("stack_create_complete").wait(StackName="secret", WaiterConfig={"Delay": 1})
    (stack,) = formation.describe_stacks(StackName="secret")["Stacks"]
    arn = stack["Outputs"][0]["OutputValue"]
    assert arn.startswith("arn:aws:secretsmanager:")
    assert host.client("secretsmanager").get_secret_value(SecretId=arn)["SecretString"] == "x"


def test_a_task_token_needs_a_grant_for_its_state_machine(host: Host) -> None:
    queue = host.client("sqs").create_queue(QueueName="answered")["QueueUrl"]
    execution = run(host, "answered", parking_map(queue), {"items": [1]})
    parked = token(host, queue)
    mine = "arn:aws:states:us-east-1:000000000000:stateMachine:answered"
    answer = {"Effect": "Allow", "Action": "states:SendTaskSuccess"}
    other, own = ({**answer, "Resource": f"{mine}-not"}, {**answer, "Resource": mine})
    with pytest.raises(ClientError, match="AccessDenied"):
        host.acting_as("other", other, "stepfunctions").send_task_success(taskToken=parked, output="{}")
    host.acting_as("own", own, "stepfunctions").send_task_success(taskToken=parked, output="{}")
    assert ended(host, execution)["status"] == "SUCCEEDED"


def test_a_task_that_was_answered_is_closed(host: Host) -> None:
    """Whoever may answer it may try again, and is told so; so also while the emulator has not gone on yet."""
    queue = host.client("sqs").create_queue(QueueName="closed")["QueueUrl"]
    execution = run(host, "closed", parking_map(queue), {"items": [1]})
    parked = token(host, queue)
    grant = {
        "Effect": "Allow",
        "Action": ["states:SendTaskSuccess", "states:SendTaskFailure", "states:SendTaskHeartbeat"],
        "Resource": "arn:aws:states:us-east-1:000000000000:stateMachine:closed",
    }
    own = host.acting_as("closing", grant, "stepfunctions")
    own.send_task_success(taskToken=parked, output="{}")
    for _ in range(2):
        with pytest.raises(own.exceptions.TaskTimedOut):
            own.send_task_success(taskToken=parked, output="{}")
        with pytest.raises(own.exceptions.TaskTimedOut):
            own.send_task_failure(taskToken=parked, error="e", cause="c")
        with pytest.raises(own.exceptions.TaskTimedOut):
            own.send_task_heartbeat(taskToken=parked)
        assert ended(host, execution)["status"] == "SUCCEEDED"
    with pytest.raises(own.exceptions.InvalidToken):
        own.send_task_success(taskToken="no token", output="{}")


@pytest.mark.parametrize(("test", "keys"), [("StringLike", "mine#*"), ("StringNotLike", "other#*")])
def test_a_grant_may_be_for_some_keys_of_a_table(host: Host, test: str, keys: str) -> None:
    """Also when a transaction writes several; without keys that are named, nothing is granted."""
    made = host.client("dynamodb").create_table(
        TableName=f"rows-{test}",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    grant = {
        "Effect": "Allow",
        "Action": ["dynamodb:PutItem", "dynamodb:Query"],
        "Resource": made["TableDescription"]["TableArn"],
        "Condition": {
            f"ForAllValues:{test}": {"dynamodb:LeadingKeys": [keys]},
            "Null": {"dynamodb:LeadingKeys": "false"},
        },
    }
    own = host.acting_as(f"keyed-{test}", grant, "dynamodb")
    mine, other = ({"TableName": f"rows-{test}", "Item": {"pk": {"S": key}}} for key in ("mine#1", "other#1"))
    own.put_item(**mine)
    own.transact_write_items(TransactItems=[{"Put": mine}])
    for refused in (
        lambda: own.put_item(**other),
        lambda: own.transact_write_items(TransactItems=[{"Put": mine}, {"Put": other}]),
        lambda: own.query(
            TableName=f"rows-{test}",
            KeyConditionExpression="pk = :k",
            ExpressionAttributeValues={":k": other["Item"]["pk"]},
        ),
    ):
        with pytest.raises(ClientError, match="AccessDenied"):
            refused()


def test_a_role_is_changed_only_if_it_has_the_boundary_that_a_policy_asks_for(host: Host) -> None:
    iam = host.client("iam")
    arn = iam.create_policy(PolicyName="at-most", PolicyDocument=policy(ANYTHING))["Policy"]["Arn"]
    trust = policy({**TRUST, "Action": "sts:AssumeRole"})
    iam.create_role(RoleName="bound", AssumeRolePolicyDocument=trust, PermissionsBoundary=arn)
    iam.create_role(RoleName="free", AssumeRolePolicyDocument=trust)
    grant = {
        "Effect": "Allow",
        "Action": "iam:PutRolePolicy",
        "Resource": "*",
        "Condition": {"StringEquals": {"iam:PermissionsBoundary": arn}},
    }
    own = host.acting_as("binder", grant, "iam")
    own.put_role_policy(RoleName="bound", PolicyName="one", PolicyDocument=policy(ANYTHING))
    with pytest.raises(ClientError, match="AccessDenied"):
        own.put_role_policy(RoleName="free", PolicyName="one", PolicyDocument=policy(ANYTHING))


def test_alarms_are_listed_by_who_may_describe_all_of_the_account(host: Host) -> None:
    watch = host.client("cloudwatch")
    about = {"Namespace": "AWS/Lambda", "MetricName": "Errors", "ComparisonOperator": "GreaterThanThreshold"}
    for name in ("Here-Strays", "There-Strays"):
        watch.put_metric_alarm(AlarmName=name, EvaluationPeriods=1, Period=60, Threshold=1, Statistic="Sum", **about)
    arn = watch.describe_alarms(AlarmNames=["Here-Strays"])["MetricAlarms"][0]["AlarmArn"]
    own = {"Effect": "Allow", "Action": "cloudwatch:DescribeAlarms", "Resource": arn.replace("Here-Strays", "*")}
    found = host.acting_as("watcher", own, "cloudwatch").describe_alarms(AlarmNamePrefix="Here-")
    assert [each["AlarmName"] for each in found["MetricAlarms"]] == ["Here-Strays"]
    narrow = host.acting_as("narrow", own | {"Resource": arn}, "cloudwatch")
    with pytest.raises(ClientError, match="AccessDenied"):
        narrow.describe_alarms(AlarmNamePrefix="Here-")


def test_a_function_gets_cookies_apart_and_sets_several(host: Host) -> None:
    """As API Gateway does for HTTP APIs, with payload format 2.0."""
    source = (
        "def handler(event, context):\n"
        "    import json\n"
        "    seen = [event.get('cookies'), event['headers'].get('cookie')]\n"
        "    return {'statusCode': 200, 'body': json.dumps(seen), 'cookies': ['a=1; Path=/; HttpOnly', 'b=2']}\n"
    )
    host.function("cookies", source)
    gateway = host.client("apigatewayv2")
    api = gateway.create_api(Name="cookies", ProtocolType="HTTP")["ApiId"]
    arn = host.client("lambda").get_function(FunctionName="cookies")["Configuration"]["FunctionArn"]
    to = gateway.create_integration(
        ApiId=api, IntegrationType="AWS_PROXY", IntegrationUri=arn, PayloadFormatVersion="2.0"
    )
    gateway.create_route(ApiId=api, RouteKey="$default", Target=f"integrations/{to['IntegrationId']}")
    gateway.create_stage(ApiId=api, StageName="$default", AutoDeploy=True)
    owner = {"authorization": f"Credential={host.place.key()}/"}
    path = f"/_aws/execute-api/{api}/$default/x"
    answer = host.ask("GET", path, headers={**owner, "cookie": "x=1; y=a=b;"})
    assert answer.json() == [["x=1", "y=a=b"], None]
    assert answer.headers.get_list("set-cookie") == ["a=1; Path=/; HttpOnly", "b=2"]
    assert host.ask("GET", path, headers=owner).json() == [None, None]
