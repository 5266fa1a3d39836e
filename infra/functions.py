"""The functions: one zip and one layer for all, and a role for each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from aws_cdk import Annotations, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra import bundle, bytecode, chains
from infra.sizes import SIZES, Size

SNAPSHOT = "live"
"""The alias of a function's newest version, which is what Lambda has a snapshot of."""


class Functions(Construct):
    """Functions by name. `allow` adds permissions to their roles."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        environment: Mapping[str, str],
        libcloud: bool = False,
        drivers: str = "",
        snapstart: Collection[str] = (),
        reserved: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(scope, name)
        self._code = bundle.code()
        if not bytecode.compiler():
            Annotations.of(self).add_warning_v2("penstock:not-compiled", bytecode.WARNING)
        self._snapstart, self._reserved = snapstart, reserved or {}
        self._layer = lambda_.LayerVersion(
            self,
            "Libraries",
            code=bundle.libraries(libcloud=libcloud, drivers=drivers),
            compatible_runtimes=[lambda_.Runtime.PYTHON_3_13],
            compatible_architectures=[lambda_.Architecture.ARM_64],
        )
        self.of = {each: self._function(each, size, environment) for each, size in SIZES.items()}

        self._snapshots = {each: self.of[each].add_alias(SNAPSHOT) for each in snapstart}

    def called(self, name: str) -> lambda_.IFunction:
        """What events and requests call: the function, or its version that starts from a snapshot."""
        return self._snapshots.get(name, self.of[name])

    def add(self, name: str, size: Size, environment: Mapping[str, str]) -> None:
        """Add a function of an optional part."""
        self.of[name] = self._function(name, size, environment)

    def allow(self, name: str, statements: Sequence[iam.PolicyStatement]) -> None:
        """Add statements to the role of one function."""
        for statement in statements:
            self.of[name].add_to_role_policy(statement)

    def _function(self, name: str, size: Size, environment: Mapping[str, str]) -> lambda_.Function:
        title = "".join(word.title() for word in name.split("_"))
        log = logs.LogGroup(
            self,
            f"{title}Log",
            log_group_name=f"/aws/lambda/{Stack.of(self).stack_name}-{name}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        role = iam.Role(self, f"{title}Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log.grant_write(role)
        return lambda_.Function(
            self,
            title,
            function_name=f"{Stack.of(self).stack_name}-{name}",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            handler=f"{name}.handler",
            code=self._code,
            layers=[self._layer],
            memory_size=size.memory,
            timeout=Duration.seconds(size.timeout.total_seconds()),
            role=role,
            log_group=log,
            environment=dict(environment),
            reserved_concurrent_executions=self._reserved.get(name),
            snap_start=lambda_.SnapStartConf.ON_PUBLISHED_VERSIONS if name in self._snapstart else None,
            recursive_loop=lambda_.RecursiveLoop.ALLOW if name in chains.ENDS else None,
        )
