"""The console: its files in a bucket, and CloudFront in front of them and of the API, as one origin.

docs/decisions/0091-the-console-is-served-beside-the-api.md
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aws_cdk import Aws, CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra import console_edge
from penstock.api.app import PROOF
from penstock.console import build, headers

FILES = Path(__file__).with_name("console_files.py")

API_PATHS = "/v1/*"

LOG_PATHS = "/v1/logs/*"

LOG_QUERY = ("key", "after", "limit")
"""All that a reply to LOG_PATHS depends on, besides the path: functions/penstock/api/logs.py."""

KEPT_ERRORS = (404, 414, 500, 501, 502, 503, 504)
"""The errors that CloudFront keeps for ten seconds unless it is told otherwise: a request that was throttled would fail
for all readers of a log until then. Source: CloudFront Developer Guide, "HTTP 4xx and 5xx status codes that CloudFront
caches".
"""

A_YEAR = Duration.days(365)

REASONS: Mapping[str, str] = {
    "AwsSolutions-CFR1": "benches and users are anywhere; who may do what, tokens say",
    "AwsSolutions-CFR2": "the console's files are public, and the API throttles itself; a site may attach its own WAF",
    "AwsSolutions-CFR3": "API Gateway logs each request to the API; who fetches public files nobody needs to know",
}

OLD_TLS: Mapping[str, str] = {
    "AwsSolutions-CFR4": "the certificate of CloudFront's own names allows old TLS; console_domain brings TLS 1.2",
}


class Console(Construct):
    """The distribution. `key` is the secret with which it proves to the functions that a request came through it."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        keep: RemovalPolicy,
        api: apigatewayv2.HttpApi,
        objects: s3.Bucket,
        domain: str,
        certificate: str,
    ) -> None:
        super().__init__(scope, name)
        self.key = secretsmanager.Secret(
            self,
            "Key",
            description="With this, CloudFront proves to the API that a request came through it",
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
            removal_policy=keep,
        )
        self.bucket = _private(self, keep)
        buckets = (f"https://{objects.bucket_regional_domain_name}", f"https://{objects.bucket_domain_name}")
        self.distribution = cloudfront.Distribution(
            self,
            "Distribution",
            comment=f"The console of {Stack.of(self).stack_name}",
            default_behavior=self._pages(buckets),
            additional_behaviors=self._replies(api),
            http_version=cloudfront.HttpVersion.HTTP2_AND_3,
            minimum_protocol_version=cloudfront.SecurityPolicyProtocol.TLS_V1_2_2021,
            error_responses=[
                cloudfront.ErrorResponse(http_status=each, ttl=Duration.seconds(0)) for each in KEPT_ERRORS
            ],
            domain_names=[domain] if domain else None,
            certificate=acm.Certificate.from_certificate_arn(self, "Certificate", certificate) if domain else None,
        )
        self.url = f"https://{domain or self.distribution.distribution_domain_name}"
        _Upload(self, "Upload", bucket=self.bucket, keep=keep)

    def _pages(self, buckets: tuple[str, ...]) -> cloudfront.BehaviorOptions:
        """Files from the bucket, compressed, each with the console's policy."""
        access = cloudfront.S3OriginAccessControl(self, "Access", origin_access_control_name=_named(self, "console"))
        return cloudfront.BehaviorOptions(
            origin=origins.S3BucketOrigin.with_origin_access_control(self.bucket, origin_access_control=access),
            viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
            cache_policy=cloudfront.CachePolicy.CACHING_OPTIMIZED,
            compress=True,
            response_headers_policy=self._headers("Pages", headers.policy(*buckets)),
            function_associations=[self._at_request("PagesFunction", console_edge.PAGES)],
        )

    def _replies(self, api: apigatewayv2.HttpApi) -> Mapping[str, cloudfront.BehaviorOptions]:
        """The API. CloudFront looks for the paths in this order."""
        origin = origins.HttpOrigin(
            f"{api.api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}",
            protocol_policy=cloudfront.OriginProtocolPolicy.HTTPS_ONLY,
            origin_ssl_protocols=[cloudfront.OriginSslPolicy.TLS_V1_2],
            custom_headers={PROOF: self.key.secret_value.unsafe_unwrap()},  # a reference, resolved when deployed
        )
        headers_ = self._headers("Replies", headers.NOT_A_PAGE)
        return {LOG_PATHS: self._logs(origin, headers_), API_PATHS: self._others(origin, headers_)}

    def _logs(
        self, origin: cloudfront.IOrigin, headers_: cloudfront.ResponseHeadersPolicy
    ) -> cloudfront.BehaviorOptions:
        """Logs by their keys, kept for all of their readers as long as a reply says.

        docs/decisions/0092-readers-of-one-log-share-a-cache.md
        """
        return cloudfront.BehaviorOptions(
            origin=origin,
            viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.HTTPS_ONLY,
            allowed_methods=cloudfront.AllowedMethods.ALLOW_GET_HEAD,
            cache_policy=cloudfront.CachePolicy(
                self,
                "Logs",
                cache_policy_name=_named(self, "logs"),
                min_ttl=Duration.seconds(0),
                default_ttl=Duration.seconds(0),
                max_ttl=Duration.minutes(5),
                query_string_behavior=cloudfront.CacheQueryStringBehavior.allow_list(*LOG_QUERY),
                enable_accept_encoding_brotli=True,
                enable_accept_encoding_gzip=True,
            ),
            compress=True,
            response_headers_policy=headers_,
        )

    def _others(
        self, origin: cloudfront.IOrigin, headers_: cloudfront.ResponseHeadersPolicy
    ) -> cloudfront.BehaviorOptions:
        """All else, of which nothing is cached, and to which all is passed on but the Host, which must be its own."""
        return cloudfront.BehaviorOptions(
            origin=origin,
            viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.HTTPS_ONLY,
            allowed_methods=cloudfront.AllowedMethods.ALLOW_ALL,
            cache_policy=cloudfront.CachePolicy.CACHING_DISABLED,
            origin_request_policy=cloudfront.OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
            compress=False,
            response_headers_policy=headers_,
            function_associations=[self._at_request("RepliesFunction", console_edge.ADDRESS)],
        )

    def _headers(self, name: str, policy: str) -> cloudfront.ResponseHeadersPolicy:
        """The headers of penstock/console/headers.py, and that the name is reached by https only."""
        others = {name: value for name, value in headers.SECURITY.items() if name.startswith("cross-origin")}
        return cloudfront.ResponseHeadersPolicy(
            self,
            name,
            response_headers_policy_name=_named(self, name.lower()),
            security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
                content_security_policy=cloudfront.ResponseHeadersContentSecurityPolicy(
                    content_security_policy=policy, override=True
                ),
                content_type_options=cloudfront.ResponseHeadersContentTypeOptions(override=True),
                frame_options=cloudfront.ResponseHeadersFrameOptions(
                    frame_option=cloudfront.HeadersFrameOption.DENY, override=True
                ),
                referrer_policy=cloudfront.ResponseHeadersReferrerPolicy(
                    referrer_policy=cloudfront.HeadersReferrerPolicy.NO_REFERRER, override=True
                ),
                strict_transport_security=cloudfront.ResponseHeadersStrictTransportSecurity(
                    access_control_max_age=A_YEAR, include_subdomains=False, override=True
                ),
            ),
            custom_headers_behavior=cloudfront.ResponseCustomHeadersBehavior(
                custom_headers=[
                    cloudfront.ResponseCustomHeader(header=name, value=value, override=True)
                    for name, value in others.items()
                ]
            ),
        )

    def _at_request(self, name: str, code: str) -> cloudfront.FunctionAssociation:
        """A function that CloudFront runs before anything else."""
        function = cloudfront.Function(
            self,
            name,
            code=cloudfront.FunctionCode.from_inline(code),
            runtime=cloudfront.FunctionRuntime.JS_2_0,
        )
        return cloudfront.FunctionAssociation(function=function, event_type=cloudfront.FunctionEventType.VIEWER_REQUEST)


class _Upload(Construct):
    """The files in the bucket, as a resource of CloudFormation: whoever deploys puts them there."""

    def __init__(self, scope: Construct, name: str, *, bucket: s3.Bucket, keep: RemovalPolicy) -> None:
        super().__init__(scope, name)
        folder = build.built(lambda line: None)
        asset = assets.Asset(self, "Files", path=str(folder))
        source = f"arn:{Aws.PARTITION}:s3:::{asset.s3_bucket_name}/{asset.s3_object_key}"
        function = self._function()
        function.add_to_role_policy(iam.PolicyStatement(actions=["s3:GetObject"], resources=[source]))
        function.add_to_role_policy(
            iam.PolicyStatement(actions=["s3:PutObject"], resources=[bucket.arn_for_objects("*")])
        )
        if keep is RemovalPolicy.DESTROY:
            function.add_to_role_policy(iam.PolicyStatement(actions=["s3:ListBucket"], resources=[bucket.bucket_arn]))
            function.add_to_role_policy(
                iam.PolicyStatement(actions=["s3:DeleteObject"], resources=[bucket.arn_for_objects("*")])
            )
        resource = CustomResource(
            self,
            "Uploaded",
            resource_type="Custom::ConsoleFiles",
            service_token=function.function_arn,
            service_timeout=Duration.minutes(10),
            properties={
                "Bucket": bucket.bucket_name,
                "From": {"Bucket": asset.s3_bucket_name, "Key": asset.s3_object_key},
                "Files": files(folder),
                "Keep": str(keep is not RemovalPolicy.DESTROY).lower(),
            },
        )
        resource.node.add_dependency(function)

    def _function(self) -> lambda_.Function:
        name = f"{Stack.of(self).stack_name}-console"
        log = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/lambda/{name}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log.grant_write(role)
        return lambda_.Function(
            self,
            "Function",
            function_name=name,
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            handler="index.handler",
            code=lambda_.Code.from_inline(FILES.read_text(encoding="utf-8")),
            memory_size=256,
            timeout=Duration.minutes(5),
            role=role,
            log_group=log,
        )


def files(folder: Path) -> list[dict[str, str]]:
    """The files of a build with their headers, index.html the last."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return [
        {"Key": name, "ContentType": headers.kind(name), "CacheControl": headers.caching(name)}
        for name in sorted(names, key=lambda name: (name == "index.html", name))
    ]


def reasons(console: Console, domain: str) -> Mapping[str, str]:
    """Why findings of the security rules are accepted."""
    shape = console.bucket.node.default_child
    assert isinstance(shape, s3.CfnBucket)
    inside = f"<{Stack.of(console).get_logical_id(shape)}.Arn>"
    wild = {f"AwsSolutions-IAM5[Resource::{inside}/*]": "the console's files, of one bucket that has nothing else"}
    return {**REASONS, **wild, **({} if domain else OLD_TLS)}


def _private(scope: Construct, keep: RemovalPolicy) -> s3.Bucket:
    """A bucket that only CloudFront reads."""
    return s3.Bucket(
        scope,
        "Bucket",
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        encryption=s3.BucketEncryption.S3_MANAGED,
        enforce_ssl=True,
        versioned=False,
        removal_policy=keep,
    )


def _named(scope: Construct, name: str) -> str:
    """A name that CloudFront, which has no regions, has once: stacks of two regions may have one name."""
    return f"{Stack.of(scope).stack_name}-{Aws.REGION}-{name}"
