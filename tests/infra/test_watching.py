"""Dashboard and alarms look at what there is, and every alarm says what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from infra import dimensions
from infra.metricspage import page
from penstock.cli.app import cli
from penstock.domain import metrics
from penstock.domain.alarms import SECTIONS, read_name
from penstock.domain.metrics import METRICS, NAMESPACE, Level
from penstock.domain.site.site import Site
from penstock.sources import ROOT as SOURCES
from tests.infra.template import Template, text

pytestmark = pytest.mark.xdist_group("infra")

OPERATIONS = (SOURCES / "docs/operators/operations.md").read_text()
AWS = {"AWS/Lambda", "AWS/SQS", "AWS/ApiGateway", "AWS/States", "AWS/DynamoDB"}
COMMAND = re.compile(r"`penstock ([a-z][^`]*)`")

Told = tuple[str, frozenset[tuple[str, str]]]


@pytest.fixture(scope="session")
def stacks(stacks_with_settings: Mapping[str, Path]) -> dict[Level, Template]:
    """The stack at each level."""
    return {level: Template.of_assembly(stacks_with_settings[f"watched-{level}"]) for level in Level}


def alarms(stack: Template) -> dict[str, dict[str, Any]]:
    return {each["Properties"]["AlarmName"]: each["Properties"] for each in stack.of("CloudWatch::Alarm").values()}


def body(stack: Template) -> dict[str, Any]:
    _, page = stack.one("CloudWatch::Dashboard")
    found: dict[str, Any] = json.loads(text(page["DashboardBody"]))
    return found


def drawn(stack: Template) -> Iterator[tuple[str, Told]]:
    """The namespace and metric of every line of the dashboard that is no search."""
    for widget in body(stack)["widgets"]:
        before: list[Any] = []
        for line in widget["properties"].get("metrics", []):
            parts = [part for part in line if not isinstance(part, dict)]
            if not parts:
                continue
            parts = [was if part == "." else part for part, was in zip(parts, before, strict=False)] + parts[
                len(before) :
            ]
            before = parts
            yield parts[0], (parts[1], frozenset(zip(parts[2::2], parts[3::2], strict=True)))


def searches(stack: Template) -> list[str]:
    lines = [line for widget in body(stack)["widgets"] for line in widget["properties"].get("metrics", [])]
    return [each["expression"] for line in lines for each in line if isinstance(each, dict) and "expression" in each]


def emitted(service: str) -> set[Told]:
    """What the code tells of a site as a whole, by name and dimensions."""
    return {
        (metric.name, frozenset({"service": service, **by}.items()))
        for metric in METRICS
        for by in metric.combinations(Site(), Level.SITE)
    }


def watched(stack: Template) -> dict[str, Told]:
    """The alarms on metrics of ours."""
    return {
        name: (each["MetricName"], frozenset((one["Name"], text(one["Value"])) for one in each["Dimensions"]))
        for name, each in alarms(stack).items()
        if each["Namespace"] == NAMESPACE
    }


def test_alarms_look_at_metrics_that_the_code_tells(stacks: dict[Level, Template]) -> None:
    for level in (Level.SITE, Level.POOLS):
        found = watched(stacks[level])
        assert len(found) > 10
        assert set(found.values()) <= emitted("Watched"), level
    assert watched(stacks[Level.OFF]) == {}


def test_the_api_finds_every_alarm_and_dead_letter_queue(stacks: dict[Level, Template], stack: Template) -> None:
    """It asks for names that begin with the stack's, and knows what stands behind that."""
    names = {name for each in stacks.values() for name in alarms(each)}
    assert {(found := read_name(name, "Watched")) and found[0] for name in names} == SECTIONS
    told = text(stack.functions()["api"]["Environment"]["Variables"]["DEAD_QUEUES"])
    queues = {
        alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0] for name, alarm in alarms(stack).items() if "DeadL" in name
    }
    assert {each.partition("=")[2] for each in told.split(",")} == {f"<{queue}>" for queue in queues}
    assert {f"Penstock-DeadLetters-{each.partition('=')[0]}" for each in told.split(",")} <= set(alarms(stack))


def test_the_dashboard_draws_metrics_that_the_code_tells(stacks: dict[Level, Template]) -> None:
    for level, stack in stacks.items():
        lines = list(drawn(stack))
        assert {name for name, _ in lines} == AWS | ({NAMESPACE} if level is not Level.OFF else set())
        ours = {told for name, told in lines if name == NAMESPACE}
        assert ours <= emitted("Watched")
        if ours:
            assert ours == emitted("Watched"), "what nobody draws nobody sees"


def test_what_is_told_by_name_is_searched_for_by_the_dimensions_it_has(stacks: dict[Level, Template]) -> None:
    known = {
        metric.name: ["service", *(each.name for each in metric.pools)]
        for metric in METRICS
        if metric.pools is not None
    }
    assert searches(stacks[Level.OFF]) == searches(stacks[Level.SITE]) == []
    found = searches(stacks[Level.POOLS])
    assert len(found) > 10
    for each in found:
        match = re.match(
            r"""SEARCH\('\{Penstock,([\w,]+)\} service="Watched" MetricName="(\w+)"', '\w+', \d+\)""", each
        )
        assert match, each
        assert known[match[2]] == match[1].split(","), each


def test_a_metric_that_is_misspelt_cannot_be_looked_at(stack: Template) -> None:
    """The comparison above can fail."""
    for by in ({}, {"outcome": "exploded"}, {"outcomes": "failed"}, {"target": "linux", "outcome": "failed"}):
        with pytest.raises(ValueError, match="does not have the dimensions"):
            dimensions.site_dimensions(metrics.JOBS_SETTLED, "Watched", by)
    assert ("JobsSettled", frozenset({("service", "Watched"), ("outcome", "failure")})) not in emitted("Watched")


def test_what_is_told_of_a_sum_is_summed_and_of_a_maximum_is_not(stacks: dict[Level, Template]) -> None:
    """A gauge is told each minute: the sum of five minutes would be five times as much."""
    of_sweeps = {"JobsSettled", "DriverCalls", "Sweeps", "FailedNudges", "BytesLost", "StoreUnlisted"}
    for name, each in alarms(stacks[Level.SITE]).items():
        if each["Namespace"] == NAMESPACE:
            assert (each["Statistic"] == "Sum") == (each["MetricName"] in of_sweeps), name


def section(name: str) -> str:
    return name.partition("-")[2].partition("-")[0]


def sections() -> dict[str, str]:
    """The sections of docs/operators/operations.md that are about alarms."""
    part = OPERATIONS.partition("\n## Alarms\n")[2].partition("\n## ")[0]
    found = re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", part, re.MULTILINE | re.DOTALL)
    return {name: " ".join(said.split()) for name, said in found}


def test_every_alarm_has_a_section_and_every_section_an_alarm(stacks: dict[Level, Template]) -> None:
    for level, stack in stacks.items():
        found = {section(name) for name in alarms(stack)}
        assert found <= sections().keys(), level
        if level is not Level.OFF:
            assert found == sections().keys()


def test_an_alarm_names_its_section_and_is_published_to_the_topic(stacks: dict[Level, Template]) -> None:
    for stack in stacks.values():
        topic, _ = stack.one("SNS::Topic")
        for name, each in alarms(stack).items():
            assert name.startswith("Watched-")
            assert each["AlarmDescription"].endswith(f'What to do: docs/operators/operations.md, "{section(name)}".')
            assert each["AlarmActions"] == each["OKActions"] == [{"Ref": topic}]


@pytest.mark.parametrize("name", sections())
def test_a_section_says_all_that_one_wants_to_know(name: str) -> None:
    said = sections()[name]
    places = [said.index(word) for word in ("**Means**", "**Look at**", "**Do**", "**Clears**")]
    assert places == sorted(places)


def test_the_commands_that_are_named_exist() -> None:
    found = COMMAND.findall(" ".join(OPERATIONS.split()))
    assert len(found) > 30
    for each in found:
        command: click.Command = cli
        context = click.Context(cli)
        for word in each.split():
            if not isinstance(command, click.Group):
                break
            known = command.get_command(context, word)
            assert known is not None, f"penstock {each}"
            command = known


def test_a_sweep_that_stays_away_is_noticed_at_every_level(stacks: dict[Level, Template]) -> None:
    for stack in stacks.values():
        alarm = alarms(stack)["Watched-SweepStopped"]
        assert (alarm["TreatMissingData"], alarm["ComparisonOperator"]) == ("breaching", "LessThanThreshold")
        assert (alarm["Period"] * alarm["EvaluationPeriods"], alarm["Threshold"]) == (300, 1)
    others = [each for name, each in alarms(stacks[Level.SITE]).items() if not name.endswith("SweepStopped")]
    assert {each["TreatMissingData"] for each in others} == {"notBreaching"}


def test_every_function_and_queue_is_watched(stack: Template) -> None:
    found = {name.removeprefix("Penstock-") for name in alarms(stack)}
    functions = set(stack.functions())
    assert {f"FunctionErrors-{each}" for each in functions} | {
        f"FunctionThrottles-{each}" for each in functions
    } <= found
    assert {f"{of}-{each}" for of in ("DeadLetters", "QueueAge") for each in ("schedule", "factory", "well")} <= found


def test_alarms_are_published_to_an_encrypted_topic_that_only_cloudwatch_may_use(stack: Template) -> None:
    topic, given = stack.one("SNS::Topic")
    key = next(name for name in stack.of("KMS::Key") if "Alarms" in name)
    made = stack.of("KMS::Key")[key]["Properties"]
    assert given["KmsMasterKeyId"] == {"Fn::GetAtt": [key, "Arn"]}
    assert made["EnableKeyRotation"]
    statements = [
        *stack.one("SNS::TopicPolicy")[1]["PolicyDocument"]["Statement"],
        *made["KeyPolicy"]["Statement"],
    ]
    allowed = [each for each in statements if each["Effect"] == "Allow" and "Service" in each["Principal"]]
    assert {each["Principal"]["Service"] for each in allowed} == {"cloudwatch.amazonaws.com"}
    assert all(
        each["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}} for each in allowed
    )
    assert len(allowed) == 2
    assert stack.of("SNS::Subscription") == {}
    assert stack.content["Outputs"]["AlarmTopic"]["Value"] == {"Ref": topic}


def test_an_address_is_subscribed_if_one_is_given(stacks_with_settings: Mapping[str, Path]) -> None:
    _, subscription = Template.of_assembly(stacks_with_settings["told"]).one("SNS::Subscription")
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "ops@example.com")


def test_the_functions_are_told_how_much_to_tell(stacks: dict[Level, Template], stack: Template) -> None:
    for level, each in stacks.items():
        told = {one["Environment"]["Variables"]["PENSTOCK_METRICS"] for one in each.functions().values()}
        assert told == {level}
    assert {one["Environment"]["Variables"]["PENSTOCK_METRICS"] for one in stack.functions().values()} == {"site"}
    assert {one["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] for one in stack.functions().values()} == {
        "Penstock"
    }


def test_a_level_that_there_is_not_is_refused() -> None:
    from infra.settings import Settings

    with pytest.raises(ValueError, match="everything"):
        Settings.of({"metrics": "everything"})


def test_the_page_of_metrics_is_what_the_code_says() -> None:
    told = (SOURCES / "docs/operators/metrics.md").read_text()
    assert told == page(), "run `python -m infra.metricspage > docs/operators/metrics.md`, by way of another file"
