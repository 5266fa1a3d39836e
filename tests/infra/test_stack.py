"""The parts of the stack are what the functions and the design expect."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from infra.queues import CONSUMERS, NAMES
from infra.sizes import GITHUB_SIZES, SIZES
from penstock.domain.jobs import jobs
from penstock.domain.units.units import CLEAN_WITHIN
from penstock.domain.units.visibility import CALL_WITHIN
from penstock.sources import ROOT as SOURCES
from penstock.usecases import sweep
from penstock.usecases.units import bells, drivers
from tests.infra.template import Template

OF_GITHUB = {"GITHUB_QUEUE", "GITHUB_KEY", "GITHUB_TOKENS", "GITHUB_SECRET"}
"""Of the front end for GitHub, where a deployment has one: test_github.py."""

OF_ONE = {"AGENT_BUCKET", "AGENT_FILE", "DEAD_QUEUES"}
"""Of the function that hands out the agent: test_agent.py."""

FROM_LAMBDA_OR_HOST = {"AWS_REGION", "AWS_ENDPOINT_URL", "SITE_LOCAL", "PENSTOCK_HOME"}


def test_every_handler_file_is_a_function_and_no_other(stack: Template) -> None:
    files = {path.stem for path in (SOURCES / "functions").glob("*.py")}
    assert set(stack.functions()) == set(SIZES)
    assert files == {*SIZES, *GITHUB_SIZES}


def test_no_function_lives_as_long_as_a_call_that_cleans_is_alone() -> None:
    """UNIT-2: who takes over never meets who began."""
    assert all(size.timeout < CLEAN_WITHIN for size in SIZES.values())
    assert all(SIZES[name].timeout <= CALL_WITHIN for name in ("factory", "well"))


def test_a_sweep_has_time_for_a_list_that_hangs_and_for_what_it_does_besides() -> None:
    """UNIT-1: it begins no call of a driver that may end too late."""
    assert drivers.CALL_SECONDS < sweep.WHOLE.total_seconds() < SIZES["sweep"].timeout.total_seconds()


def test_functions_run_on_arm_with_one_zip_and_one_layer(stack: Template) -> None:
    functions = stack.functions().values()
    assert {tuple(each["Architectures"]) for each in functions} == {("arm64",)}
    assert {each["Runtime"] for each in functions} == {"python3.13"}
    assert len({json.dumps([each["Code"], each["Layers"]]) for each in functions}) == 1


def test_functions_are_told_all_that_bootstrap_reads(stack: Template) -> None:
    source = (SOURCES / "functions" / "penstock" / "bootstrap.py").read_text()
    read = set(re.findall(r"""(?:env|environ)(?:\.get\(|\[)["'](\w+)""", source))
    for name, function in stack.functions().items():
        told = set(function["Environment"]["Variables"])
        assert read - FROM_LAMBDA_OR_HOST - OF_GITHUB - OF_ONE <= told, name


def test_the_public_url_is_the_parameter_or_the_apis_own(stack: Template) -> None:
    url = stack.functions()["api"]["Environment"]["Variables"]["PUBLIC_URL"]["Fn::If"]
    condition = stack.content["Conditions"][url[0]]
    assert condition == {"Fn::Equals": [{"Ref": "PublicUrl"}, ""]}
    assert url[1]["Fn::GetAtt"][1] == "ApiEndpoint"
    assert url[2] == {"Ref": "PublicUrl"}


@pytest.mark.parametrize("name", NAMES)
def test_a_queue_outwaits_its_function_and_sets_failures_aside(stack: Template, name: str) -> None:
    _, queue = stack.queue(name)
    assert queue["VisibilityTimeout"] == stack.functions()[CONSUMERS[name]]["Timeout"]
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 20
    dead = queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
    (alarm,) = [each for each in stack.of("CloudWatch::Alarm") if each.startswith(f"AlarmsDeadLetters{name}")]
    looked_at = stack.of("CloudWatch::Alarm")[alarm]["Properties"]["Dimensions"]
    assert looked_at == [{"Name": "QueueName", "Value": {"Fn::GetAtt": [dead, "QueueName"]}}]


def test_a_step_comes_again_before_its_attempt_is_taken_for_lost(stack: Template) -> None:
    """Then the sweep would replace an attempt whose message is only hidden. One more sweep may be late."""
    _, queue = stack.queue("schedule")
    assert timedelta(seconds=queue["VisibilityTimeout"]) < jobs.STEP_WITHIN < jobs.FLOW_WITHIN


def test_queues_are_encrypted_and_refuse_plain_http(stack: Template) -> None:
    queues = stack.of("SQS::Queue")
    guarded = [each["Properties"]["Queues"][0]["Ref"] for each in stack.of("SQS::QueuePolicy").values()]
    assert all(each["Properties"]["SqsManagedSseEnabled"] for each in queues.values())
    assert sorted(guarded) == sorted(queues)


def test_each_queue_wakes_its_function_and_takes_partial_failures(stack: Template) -> None:
    sizes = {}
    for mapping in stack.of("Lambda::EventSourceMapping").values():
        given = mapping["Properties"]
        assert given["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        function = stack.content["Resources"][given["FunctionName"]["Ref"]]["Properties"]
        name = next(each for each in NAMES if given["EventSourceArn"]["Fn::GetAtt"][0] == stack.queue(each)[0])
        assert function["Handler"] == f"{CONSUMERS[name]}.handler"
        sizes[name] = given["BatchSize"]
        assert given["ScalingConfig"] == {"MaximumConcurrency": {"sweep": 100, "serve": 50}.get(name, 200)}
    assert sizes == {"schedule": 10, "serve": 10, "factory": 1, "well": 1, "sweep": 1}


def test_one_call_at_a_time_has_messages_of_a_group(stack: Template) -> None:
    """SQS sees to that in FIFO queues alone; their throughput is that of each group."""
    _, queue = stack.queue("serve")
    assert queue["FifoQueue"] is True
    assert (queue["DeduplicationScope"], queue["FifoThroughputLimit"]) == ("messageGroup", "perMessageGroupId")


def test_the_table_has_its_keys_its_two_indexes_and_is_kept(stack: Template) -> None:
    _, table = stack.one("DynamoDB::GlobalTable")
    resource = next(iter(stack.of("DynamoDB::GlobalTable").values()))
    indexes = {
        each["IndexName"]: (
            [key["AttributeName"] for key in each["KeySchema"]],
            each["Projection"]["ProjectionType"],
        )
        for each in table["GlobalSecondaryIndexes"]
    }
    assert [key["AttributeName"] for key in table["KeySchema"]] == ["pk", "sk"]
    assert indexes == {
        "due": (["due_shard", "due"], "KEYS_ONLY"),
        "listing": (["list_key", "list_sort"], "KEYS_ONLY"),
    }
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    replica = table["Replicas"][0]
    assert replica["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]
    assert replica["DeletionProtectionEnabled"]
    assert resource["DeletionPolicy"] == "Retain"


def test_the_bucket_is_private_and_nothing_but_bells_expires_by_itself(stack: Template) -> None:
    _, bucket = stack.named("S3::Bucket", "Storage")
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    rule, of_bells = bucket["LifecycleConfiguration"]["Rules"]
    assert (of_bells["Prefix"], of_bells["ExpirationInDays"]) == (bells.PREFIX, 1)
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 8}
    assert not [key for key in rule if "Expiration" in key]


def test_workers_and_users_have_routes_of_their_own(stack: Template) -> None:
    routes = {}
    for route in stack.of("ApiGatewayV2::Route").values():
        target = route["Properties"]["Target"]["Fn::Join"][1][1]["Ref"]
        uri = stack.content["Resources"][target]["Properties"]["IntegrationUri"]["Fn::GetAtt"][0]
        routes[route["Properties"]["RouteKey"]] = stack.content["Resources"][uri]["Properties"]["Handler"]
    assert routes == {
        "ANY /v1/agent/{proxy+}": "agent_api.handler",
        "ANY /v1/{proxy+}": "api.handler",
        "$default": "api.handler",
    }


def test_access_logs_have_neither_headers_nor_queries(stack: Template) -> None:
    """SEC-1: tokens are in headers, keys of logs in queries."""
    logged = stack.one("ApiGatewayV2::Stage")[1]["AccessLogSettings"]["Format"]
    for each in ("header", "authorizer", "query"):
        assert each.lower() not in logged.lower()


def test_the_sweep_runs_each_minute_and_unsettled_flows_are_settled(stack: Template) -> None:
    rules = [each["Properties"] for each in stack.of("Events::Rule").values()]
    (timer,) = [rule for rule in rules if "ScheduleExpression" in rule]
    (ended,) = [rule for rule in rules if "EventPattern" in rule]
    assert timer["ScheduleExpression"] == "rate(1 minute)"
    assert ended["EventPattern"]["detail"]["status"] == ["FAILED", "TIMED_OUT", "ABORTED"]
    assert len(ended["EventPattern"]["detail"]["stateMachineArn"]) == 1


def test_the_outputs_are_there(stack: Template) -> None:
    assert {"ApiUrl", "TableName", "BucketName", "FlowArn", "SigningSecret"} <= set(stack.content["Outputs"])


def test_every_log_group_is_forgotten_after_a_month(stack: Template) -> None:
    kept = [each["Properties"]["RetentionInDays"] for each in stack.of("Logs::LogGroup").values()]
    assert set(kept) == {30}
    assert len(kept) == len(SIZES) + 2  # the API's, and that of what uploads the console


def test_the_security_rules_have_no_findings(assembly: Path) -> None:
    report = json.loads((assembly / "validation-report.json").read_text())
    assert report["pluginReports"] == []


def test_a_trial_leaves_nothing_behind(stacks_with_settings: Mapping[str, Path]) -> None:
    trial = Template.of_assembly(stacks_with_settings["trial"])
    kept = [name for name, each in trial.content["Resources"].items() if each.get("DeletionPolicy") == "Retain"]
    assert kept == []
    assert {each["FunctionName"] for each in trial.functions().values()} == {f"Trial-{name}" for name in SIZES}
