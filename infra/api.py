"""The HTTP API. Paths below /v1/agent go to the function for workers, all others to that for users.

Each route has a throttle of its own, so that whoever floods one is stopped there, and heartbeats come through:
strangers can take 650 requests a second of what the account has. Throttles are best effort. A caller that is throttled
gets 429; agents and the CLI repeat it. An HTTP API knows no callers: what one of them asks for is not counted. Source:
API Gateway Developer Guide, "Throttle requests to your HTTP APIs".
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct


@dataclass(frozen=True)
class Throttle:
    """Requests a second, and how many may come at once.

    An account has 10,000 and 5,000 for all its APIs, in some regions 2,500 and 1,250. Source: API Gateway Developer
    Guide, "Quotas".
    """

    rate: int
    burst: int


USERS = Throttle(500, 1000)
AGENTS = Throttle(2000, 1000)
"""What 100,000 running workers send: 72 requests an hour each (tests/figures/price.py)."""

WEBHOOKS = Throttle(100, 200)
"""GitHub's deliveries. One that was refused is found when the deliveries are listed."""

UNKNOWN = Throttle(50, 100)
"""Paths that are no part of the API."""

AGENT_PATHS, USER_PATHS = "/v1/agent/{proxy+}", "/v1/{proxy+}"

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
            throttle=apigatewayv2.ThrottleSettings(rate_limit=USERS.rate, burst_limit=USERS.burst),
        )
        shape = stage.node.default_child
        assert isinstance(shape, apigatewayv2.CfnStage)
        shape.access_log_settings = apigatewayv2.CfnStage.AccessLogSettingsProperty(
            destination_arn=log.log_group_arn, format=json.dumps(LOGGED)
        )
        self._stage, self._throttles = shape, dict[str, dict[str, int]]()

    def hook(self, path: str, function: lambda_.IFunction) -> None:
        """Connect one path for a webhook."""
        do = HttpLambdaIntegration("Hook", function, scope_permission_to_route=False)
        (route,) = self.http.add_routes(path=path, methods=[apigatewayv2.HttpMethod.POST], integration=do)
        self._throttle(route, f"POST {path}", WEBHOOKS)

    def route(self, users: lambda_.IFunction, agents: lambda_.IFunction) -> None:
        """Connect the routes. Unknown paths go to `users`, which answers 404 as problem+json."""
        users_do = HttpLambdaIntegration("Users", users, scope_permission_to_route=False)
        agents_do = HttpLambdaIntegration("Agents", agents, scope_permission_to_route=False)
        (agents_route,) = self.http.add_routes(path=AGENT_PATHS, integration=agents_do)
        (users_route,) = self.http.add_routes(path=USER_PATHS, integration=users_do)
        unknown = apigatewayv2.HttpRoute(
            self,
            "Unknown",
            http_api=self.http,
            route_key=apigatewayv2.HttpRouteKey.DEFAULT,
            integration=users_do,
        )
        self._throttle(agents_route, f"ANY {AGENT_PATHS}", AGENTS)
        self._throttle(users_route, f"ANY {USER_PATHS}", USERS)
        self._throttle(unknown, "$default", UNKNOWN)
        users.add_permission(
            "Unknown",  # the permission for the other routes does not match the source of this one
            principal=iam.ServicePrincipal("apigateway.amazonaws.com"),
            source_arn=Stack.of(self).format_arn(
                service="execute-api", resource=self.http.api_id, resource_name="*/$default"
            ),
        )

    def _throttle(self, route: apigatewayv2.IHttpRoute, key: str, most: Throttle) -> None:
        """Throttle one route, which has to be there before its stage's settings name it."""
        self._throttles[key] = {"ThrottlingRateLimit": most.rate, "ThrottlingBurstLimit": most.burst}
        self._stage.route_settings = self._throttles
        self._stage.node.add_dependency(route)
