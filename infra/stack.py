"""The stack: all constructs of a deployment, and how they are connected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws, CfnCondition, CfnOutput, CfnParameter, Fn, Stack
from constructs import Construct

from infra import agent, fargate, flow, network, wells
from infra.alarms import Alarms
from infra.api import Api
from infra.dashboard import Dashboard
from infra.flow import Flow
from infra.functions import Functions
from infra.github import REASONS as GITHUB_REASONS
from infra.github import GitHubFront
from infra.grants import (
    CLOUD_GRANTS,
    CONSOLE_GRANTS,
    EC2_GRANTS,
    GRANTS,
    NOT_WRITTEN,
    PUBLISHED,
    WRITTEN,
    accounts_statements,
    alarms_arn,
    cloud_arns,
    ec2_statements,
    pass_role,
    secret_statements,
    statements,
)
from infra.machine_events import MachineEvents
from infra.measures import Monitored
from infra.queues import CONSUMERS, NAMES, Queues
from infra.reasons import EVERYWHERE, acknowledge, cloud_secrets, lent_objects, machines, tasks, wildcards
from infra.schedule import Schedule
from infra.settings import Settings
from infra.sizes import SIZES
from infra.storage import OBJECTS, Storage
from infra.table import DUE, LISTING, Rows
from penstock.usecases import sweep
from penstock.usecases.units import bells

if TYPE_CHECKING:
    from infra.console import Console

BATCH = {"schedule": 10, "serve": 10, "factory": 1, "well": 1, "sweep": 1}
"""Messages per call. A driver may take a minute, and so may a part of a sweep: no message waits for another's."""

AT_ONCE = {"sweep": sweep.CALLS, "serve": 50}
"""How many calls some queues have at a time, whatever the site has of the others: groups of pools that many wait for
are few, and each has one call.
"""


class Penstock(Stack):
    """All of Penstock in one account and region."""

    def __init__(self, scope: Construct, name: str, *, settings: Settings) -> None:
        super().__init__(scope, name, description="The gate in front of scarce things")
        self.template_options.metadata = {"Penstock": {"options": settings.options}}  # for the next `penstock deploy`
        self.rows = Rows(self, "Rows", keep=settings.keep)
        self.storage = Storage(
            self, "Storage", keep=settings.keep, identity_keys=settings.identity_keys, console=_origins(settings)
        )
        self.queues = Queues(self, "Queues", timeouts={each: SIZES[CONSUMERS[each]].timeout for each in NAMES})
        self.api = Api(self, "Api")
        self.console = self._serve_console(settings) if settings.console else None
        front = GitHubFront(self, "GitHub", queues=self.queues, keep=settings.keep) if settings.github else None
        environment = {**self._environment(settings), **(front.environment if front else {})}
        self.functions = Functions(
            self,
            "Functions",
            environment=environment,
            libcloud=settings.libcloud,
            drivers=settings.drivers,
            snapstart=settings.snapstart,
            reserved={"agent_api": settings.agents_at_once} if settings.agents_at_once else {},
        )
        functions = self.functions.of
        self.agent = self._hand_out_agent()
        self._name_dead_letters()
        self.api.route(users=self.functions.called("api"), agents=self.functions.called("agent_api"))
        self.flow = Flow(self, "Flow", queue=self.queues.of["schedule"], settle=functions["settle"])
        Schedule(self, "Schedule", sweep=functions["sweep"], settle=functions["settle"], flow=flow.arn(self))
        self._feed(settings.at_once)
        self._permit()
        self._permit_console()
        if front:
            front.join(self.functions, self.api, environment, self._arns())
            acknowledge(self, GITHUB_REASONS)
        self._reach_outside(settings)
        self._lend(settings)
        self._watch(settings)
        self._outputs()
        acknowledge(self, {**EVERYWHERE, **wildcards(self.storage.bucket, flow.name(self))})

    def _permit_console(self) -> None:
        """What the functions may do for the console, if there is one."""
        if self.console:
            for each, rows in CONSOLE_GRANTS.items():
                self.functions.allow(each, statements(rows, {"front secret": self.console.key.secret_arn}))

    def _reach_outside(self, settings: Settings) -> None:
        """What drivers reach: machines of EC2 and of other clouds, secrets, and servers in a network."""
        if settings.ec2:
            self._make_machines(settings.ec2_role)
        if settings.fargate:
            self._run_tasks(settings)
        if settings.libcloud:
            self._read_cloud_secrets()
        for each in ("well", "sweep"):  # one creates, the other lists
            self.functions.allow(each, secret_statements("well_secrets", settings.well_secrets))
        for each in ("factory", "sweep"):
            self.functions.allow(each, secret_statements("factory_secrets", settings.factory_secrets))
        if settings.well_subnets:
            network.join(self.functions, settings.well_subnets, settings.well_security_groups)
            acknowledge(self, network.REASONS)

    def _serve_console(self, settings: Settings) -> Console:
        """The console at the API's side. The CDK's modules for it are loaded only where it is: that takes a second."""
        from infra import console

        made = console.Console(
            self,
            "Console",
            keep=settings.keep,
            api=self.api.http,
            objects=self.storage.bucket,
            domain=settings.console_domain,
            certificate=settings.console_certificate,
        )
        acknowledge(self, console.reasons(made, settings.console_domain))
        return made

    def _hand_out_agent(self) -> agent.AgentObject:
        """Upload the agent's file, and tell the function that hands it out where it is."""
        file = agent.upload(self)
        self.functions.of["agent_api"].add_environment("AGENT_BUCKET", file.bucket)
        self.functions.of["agent_api"].add_environment("AGENT_FILE", file.key)
        return file

    def _name_dead_letters(self) -> None:
        """Tell the API which dead-letter queues there are. Its alarms it knows by the stack's name."""
        urls = (f"{name}={queue.queue_url}" for name, queue in self.queues.dead.items())
        self.functions.of["api"].add_environment("DEAD_QUEUES", ",".join(urls))

    def _feed(self, at_once: int) -> None:
        """Connect queues to the functions that consume them. However many messages there are, their calls leave
        executions of the account to others.
        """
        for each, batch in BATCH.items():
            name = "Queue" if each == CONSUMERS[each] else f"{each.title()}Queue"
            self.functions.called(CONSUMERS[each]).add_event_source_mapping(
                name,
                event_source_arn=self.queues.of[each].queue_arn,
                batch_size=batch,
                report_batch_item_failures=True,
                max_concurrency=AT_ONCE.get(each, at_once),
            )

    def _permit(self) -> None:
        """Grant the permissions that every deployment has: infra/grants.py."""
        for each, rows in GRANTS.items():
            self.functions.allow(each, statements(rows, self._arns()))
        for key in self.storage.identity[1:]:  # former and future signing keys
            self.functions.allow("api", statements(PUBLISHED, {"identity key": key.key_arn}))

    def _make_machines(self, role: str) -> None:
        """Permit factories to make machines in EC2, and the sweep to remove strays; subscribe to events about them."""
        # The id stays: another one would replace both rules.
        MachineEvents(self, "Tidings", queue=self.queues.of["factory"], dead=self.queues.dead["factory"])
        for each, permissions in EC2_GRANTS.items():
            self.functions.allow(each, ec2_statements(permissions, self._site))
        if role:
            self.functions.allow("factory", [pass_role(role)])
        acknowledge(self, machines())

    def _run_tasks(self, settings: Settings) -> None:
        """Permit factories to run tasks of ECS, and the sweep to stop strays; subscribe to events about them."""
        names = (settings.fargate, settings.fargate_role, settings.fargate_logs)
        made = fargate.Fargate(self._site, self.stack_name, *names)
        queue, dead = self.queues.of["factory"], self.queues.dead["factory"]
        fargate.TaskEvents(self, "TaskEvents", clusters=settings.fargate, queue=queue, dead=dead)
        for each in fargate.FARGATE_GRANTS:
            self.functions.allow(each, made.statements(each))
        acknowledge(self, tasks(made.reasons()))

    def _read_cloud_secrets(self) -> None:
        """Permit factories and the sweep to read the credentials for other clouds."""
        for each, rows in CLOUD_GRANTS.items():
            self.functions.allow(each, statements(rows, cloud_arns()))
        acknowledge(self, cloud_secrets())

    def _lend(self, settings: Settings) -> None:
        """Permit wells to lend the named accounts, roles and bucket, and the sweep to revoke and delete."""
        self.functions.allow("well", accounts_statements(settings.accounts_lambdas))
        lent = wells.LentResources.of(settings, self._site)
        for each, permissions in wells.STS_GRANTS.items() if settings.sts_roles else ():
            self.functions.allow(each, lent.statements(permissions))
        for each, permissions in wells.S3_GRANTS.items() if settings.s3_well else ():
            self.functions.allow(each, lent.statements(permissions))
        if settings.s3_well:
            acknowledge(self, lent_objects(lent.objects))

    def _watch(self, settings: Settings) -> None:
        """The dashboard and the alarms."""
        on = Monitored(
            service=self.stack_name,
            level=settings.metrics,
            functions=self.functions.of,
            queues=self.queues.of,
            dead=self.queues.dead,
            table=self.rows.table,
            machine=self.flow.machine,
            api=self.api.http,
        )
        Dashboard(self, "Dashboard", on=on)
        self.alarms = Alarms(self, "Alarms", on=on, email=settings.alarm_email)

    @property
    def _site(self) -> str:
        """The value of the tag `penstock:site`, which no other deployment has: the stack's name and region."""
        return f"{self.stack_name}.{Aws.REGION}"

    def _environment(self, settings: Settings) -> dict[str, str]:
        """The environment of every function. Only penstock/bootstrap.py reads it."""
        url = self._public_url()
        return {
            "TABLE": self.rows.table.table_name,
            "BUCKET": self.storage.bucket.bucket_name,
            **{f"{each.upper()}_QUEUE": self.queues.of[each].queue_url for each in NAMES},
            "FLOW": flow.arn(self),
            "PUBLIC_URL": url,
            "CONSOLE_URL": self.console.url if self.console else self._console_url(),
            "PENSTOCK_SITE": self._site,
            "SIGNING_SECRET": self.storage.signing.secret_arn,
            "METADATA_KEY": self.storage.metadata.key_arn,
            "PROVENANCE_KEY": self.storage.provenance.key_arn,
            "IDENTITY_KEYS": Fn.join(",", [key.key_arn for key in self.storage.identity]),
            "POWERTOOLS_SERVICE_NAME": self.stack_name,
            "PENSTOCK_METRICS": settings.metrics,
            "LOG_LEVEL": "INFO",
            **({"FRONT_SECRET": self.console.key.secret_arn} if self.console else {}),
        }

    def _public_url(self) -> str:
        given = CfnParameter(
            self,
            "PublicUrl",
            default="",
            description="The URL that people and workers use, if it is not the HTTP API's own (no slash at the end)",
        )
        unset = CfnCondition(self, "NoPublicUrl", expression=Fn.condition_equals(given.value_as_string, ""))
        chosen = Fn.condition_if(unset.logical_id, self.api.http.api_endpoint, given.value_as_string)
        return chosen.to_string()

    def _console_url(self) -> str:
        given = CfnParameter(
            self,
            "ConsoleUrl",
            default="",
            description="The URL of the console, if something else than this stack serves it (no slash at the end)",
        )
        return given.value_as_string

    def _arns(self) -> dict[str, str]:
        """The ARNs of the resources that the tables in grants.py name."""
        table = self.rows.table.table_arn
        return {
            "table": table,
            **dict.fromkeys((*NOT_WRITTEN, *WRITTEN), table),
            "due index": f"{table}/index/{DUE}",
            "listing index": f"{table}/index/{LISTING}",
            "bucket": self.storage.bucket.bucket_arn,
            "objects": self.storage.bucket.arn_for_objects(f"{OBJECTS}*"),
            "bells": self.storage.bucket.arn_for_objects(f"{bells.PREFIX}*"),
            "agent file": self.agent.arn,
            "signing secret": self.storage.signing.secret_arn,
            "metadata key": self.storage.metadata.key_arn,
            "identity key": self.storage.identity[0].key_arn,
            "provenance key": self.storage.provenance.key_arn,
            "flow": flow.arn(self),
            "executions": flow.arn(self, "execution", ":*"),
            "alarms": alarms_arn(),
            **{f"{each} queue": self.queues.of[each].queue_arn for each in NAMES},
            **{f"{each} dead letters": queue.queue_arn for each, queue in self.queues.dead.items()},
        }

    def _outputs(self) -> None:
        shown = {
            "ApiUrl": self.api.http.api_endpoint,
            "ApiId": self.api.http.api_id,
            "TableName": self.rows.table.table_name,
            "BucketName": self.storage.bucket.bucket_name,
            "FlowArn": flow.arn(self),
            "SigningSecret": self.storage.signing.secret_arn,
            "AlarmTopic": self.alarms.topic.topic_arn,
            "Region": Aws.REGION,
        }
        if self.console:
            shown["ConsoleUrl"] = self.console.url
            shown["ConsoleName"] = self.console.distribution.distribution_domain_name
        for name, value in shown.items():
            CfnOutput(self, name, value=value)


def _origins(settings: Settings) -> list[str]:
    """The origins that the console may have. The distribution's own name is known only when it is made, after the
    bucket, which its policy names.
    """
    if not settings.console:
        return []
    return [f"https://{settings.console_domain or '*.cloudfront.net'}"]
