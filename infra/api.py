"""The HTTP API. Paths below /v1/agent go to the function for workers, all others to that for users."""

from __future__ import annotations

import json

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

RATE = 500
"""Requests per second for the whole API. Others get 429, and agents and the CLI retry them."""

BURST = 1000

LOGGED = {
    "time": "$context.requestTime",
    "request": "$context.requestId",
    "ip": "$context.identity.sourceIp",
    "method": "$context.httpMethod",
    "path": "$context.path",
    "status": "$context.status",
    "milliseconds": "$context.responseLatency",
    "bytes": "$context.responseLength",
    "error": "$context.integrationErrorMessage",
}
"""The fields of the access log. Headers are left out, because they contain tokens."""


class Api(Construct):
    """Routes, logs and throttling. The functions check bearer tokens themselves."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        self.http = apigatewayv2.HttpApi(self, "Http", create_default_stage=False)
        log = logs.LogGroup(self, "Log", retention=logs.RetentionDays.ONE_MONTH, removal_policy=RemovalPolicy.DESTROY)
        stage = self.http.add_stage(
            "Stage",
            stage_name="$default",
            auto_deploy=True,
            throttle=apigatewayv2.ThrottleSettings(rate_limit=RATE, burst_limit=BURST),
        )
        shape = stage.node.default_child
        assert isinstance(shape, apigatewayv2.CfnStage)
        shape.access_log_settings = apigatewayv2.CfnStage.AccessLogSettingsProperty(
            destination_arn=log.log_group_arn, format=json.dumps(LOGGED)
        )

    def hook(self, path: str, function: lambda_.IFunction) -> None:
        """Connect one path for a webhook."""
        do = HttpLambdaIntegration("Hook", function, scope_permission_to_route=False)
        self.http.add_routes(path=path, methods=[apigatewayv2.HttpMethod.POST], integration=do)

    def route(self, users: lambda_.IFunction, agents: lambda_.IFunction) -> None:
        """Connect the routes. Unknown paths go to `users`, which answers 404 as problem+json."""
        users_do = HttpLambdaIntegration("Users", users, scope_permission_to_route=False)
        agents_do = HttpLambdaIntegration("Agents", agents, scope_permission_to_route=False)
        self.http.add_routes(path="/v1/agent/{proxy+}", integration=agents_do)
        self.http.add_routes(path="/v1/{proxy+}", integration=users_do)
        apigatewayv2.HttpRoute(
            self,
            "Unknown",
            http_api=self.http,
            route_key=apigatewayv2.HttpRouteKey.DEFAULT,
            integration=users_do,
        )
        users.add_permission(
            "Unknown",  # the permission for the other routes does not match the source of this one
            principal=iam.ServicePrincipal("apigateway.amazonaws.com"),
            source_arn=Stack.of(self).format_arn(
                service="execute-api", resource=self.http.api_id, resource_name="*/$default"
            ),
        )
