"""The console in the stack: who reaches its files and the API by CloudFront, and with which headers."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from infra import console_edge
from infra.settings import Settings
from penstock.api import openapi
from penstock.api.app import PROOF, VIEWER
from penstock.console import headers, node
from tests.infra.stacks import CERTIFICATE, CONSOLE, DOMAIN
from tests.infra.template import Template, listed, text


def distribution(stack: Template) -> dict[str, Any]:
    return dict(stack.one("CloudFront::Distribution")[1]["DistributionConfig"])


def origin(stack: Template, behaviour: Mapping[str, Any]) -> dict[str, Any]:
    (found,) = [each for each in distribution(stack)["Origins"] if each["Id"] == behaviour["TargetOriginId"]]
    return dict(found)


def sent(stack: Template, behaviour: Mapping[str, Any]) -> dict[str, Any]:
    """The headers that CloudFront sends with what a behaviour serves."""
    policy = stack.content["Resources"][behaviour["ResponseHeadersPolicyId"]["Ref"]]["Properties"]
    return dict(policy["ResponseHeadersPolicyConfig"])


def replies(stack: Template) -> dict[str, Any]:
    _, found = distribution(stack)["CacheBehaviors"]
    return dict(found)


def test_an_error_is_kept_for_nobody_else(stack: Template) -> None:
    """Or a request that was throttled would fail for all readers of a log for ten seconds."""
    told = distribution(stack)["CustomErrorResponses"]
    assert {each["ErrorCode"] for each in told} == {404, 414, 500, 501, 502, 503, 504}
    assert all(set(each) == {"ErrorCode", "ErrorCachingMinTTL"} and each["ErrorCachingMinTTL"] == 0 for each in told)


def test_logs_by_their_keys_are_kept_for_all_of_their_readers(stack: Template) -> None:
    """SEC-2: a reply depends on its address alone; who reads is not passed on, so that it cannot be kept for others."""
    found, _ = distribution(stack)["CacheBehaviors"]
    assert (found["PathPattern"], found["ViewerProtocolPolicy"], found["Compress"]) == (
        "/v1/logs/*",
        "https-only",
        True,
    )
    assert set(found["AllowedMethods"]) == {"GET", "HEAD"}
    assert found["TargetOriginId"] == replies(stack)["TargetOriginId"]
    assert "OriginRequestPolicyId" not in found
    policy = stack.content["Resources"][found["CachePolicyId"]["Ref"]]["Properties"]["CachePolicyConfig"]
    assert (policy["MinTTL"], policy["DefaultTTL"], policy["MaxTTL"]) == (0, 0, 300)
    kept = policy["ParametersInCacheKeyAndForwardedToOrigin"]
    assert kept["CookiesConfig"] == {"CookieBehavior": "none"}
    assert kept["HeadersConfig"] == {"HeaderBehavior": "none"}
    asked = {name for each in openapi.users() if each.path.startswith("/v1/logs/") for name in each.query}
    assert kept["QueryStringsConfig"] == {"QueryStringBehavior": "whitelist", "QueryStrings": ANY}
    assert set(kept["QueryStringsConfig"]["QueryStrings"]) == asked


def test_only_the_distribution_reads_the_consoles_files(stack: Template) -> None:
    """SEC-2."""
    bucket, made = stack.named("S3::Bucket", "Console")
    (policy,) = [
        each["Properties"]["PolicyDocument"]["Statement"]
        for each in stack.of("S3::BucketPolicy").values()
        if each["Properties"]["Bucket"] == {"Ref": bucket}
    ]
    (allowed,) = [each for each in policy if each["Effect"] == "Allow"]
    assert (allowed["Action"], allowed["Principal"]) == ("s3:GetObject", {"Service": "cloudfront.amazonaws.com"})
    only = text(allowed["Condition"]["StringEquals"]["AWS:SourceArn"])
    assert only.endswith(f":distribution/<{stack.one('CloudFront::Distribution')[0]}>")
    assert set(made["PublicAccessBlockConfiguration"].values()) == {True}
    assert made["BucketEncryption"]["ServerSideEncryptionConfiguration"]


def test_paths_of_the_api_go_to_the_api_with_all_but_the_host_and_nothing_is_cached(stack: Template) -> None:
    found = replies(stack)
    assert found["PathPattern"] == "/v1/*"
    assert set(found["AllowedMethods"]) == {"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "DELETE"}
    # Source: CloudFront Developer Guide, "Use managed cache policies", "Use managed origin request policies"
    assert found["CachePolicyId"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"  # CachingDisabled
    assert found["OriginRequestPolicyId"] == "b689b0a8-53d0-40ab-baf2-68738e2966ac"  # AllViewerExceptHostHeader
    assert found["ViewerProtocolPolicy"] == "https-only"
    api = stack.one("ApiGatewayV2::Api")[0]
    where = origin(stack, found)
    assert text(where["DomainName"]) == f"<{api}>.execute-api.<AWS::Region>.<AWS::URLSuffix>"
    assert where["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only"


def test_only_requests_to_the_api_carry_the_secret(stack: Template) -> None:
    """SEC-2: the API's function reads the same secret, and no other does."""
    key, made = stack.named("SecretsManager::Secret", "Console")
    (header,) = origin(stack, replies(stack))["OriginCustomHeaders"]
    assert header["HeaderName"] == PROOF
    assert text(header["HeaderValue"]) == f"{{{{resolve:secretsmanager:<{key}>:SecretString:::}}}}"
    assert "OriginCustomHeaders" not in origin(stack, distribution(stack)["DefaultCacheBehavior"])
    assert made["GenerateSecretString"]["PasswordLength"] == 64
    read = {
        name
        for name, function in stack.functions().items()
        for statement in stack.statements(function["Role"])
        if f"<{key}>" in [text(each) for each in listed(statement["Resource"])]
    }
    assert read == {"api"}
    assert stack.functions()["api"]["Environment"]["Variables"]["FRONT_SECRET"] == {"Ref": key}


def test_pages_have_the_consoles_policy_and_replies_are_no_pages(stack: Template) -> None:
    """SEC-2: no foreign script runs, no foreign page frames it, and nothing goes anywhere else."""
    bucket = stack.named("S3::Bucket", "Storage")[0]
    pages, api = sent(stack, distribution(stack)["DefaultCacheBehavior"]), sent(stack, replies(stack))
    buckets = (f"https://<{bucket}.RegionalDomainName>", f"https://<{bucket}.DomainName>")
    policies = [each["SecurityHeadersConfig"]["ContentSecurityPolicy"] for each in (pages, api)]
    assert text(policies[0]["ContentSecurityPolicy"]) == headers.policy(*buckets)
    assert policies[1]["ContentSecurityPolicy"] == headers.NOT_A_PAGE
    for each in (pages, api):
        security = each["SecurityHeadersConfig"]
        assert security["StrictTransportSecurity"]["AccessControlMaxAgeSec"] == 365 * 24 * 3600
        assert security["FrameOptions"]["FrameOption"] == headers.SECURITY["x-frame-options"]
        assert security["ReferrerPolicy"]["ReferrerPolicy"] == headers.SECURITY["referrer-policy"]
        custom = {one["Header"]: one["Value"] for one in each["CustomHeadersConfig"]["Items"]}
        assert custom == {"cross-origin-opener-policy": "same-origin"}
        assert all(one["Override"] for one in [*security.values(), *each["CustomHeadersConfig"]["Items"]])
    assert set(headers.SECURITY) == {*custom, "x-content-type-options", "x-frame-options", "referrer-policy"}


def test_only_the_consoles_pages_may_show_objects(stack: Template, stacks_with_settings: Mapping[str, Path]) -> None:
    def allowed(where: Template) -> list[Any]:
        found = where.named("S3::Bucket", "Storage")[1].get("CorsConfiguration", {"CorsRules": []})["CorsRules"]
        return [(each["AllowedOrigins"], each["AllowedMethods"]) for each in found]

    assert allowed(stack) == [(["https://*.cloudfront.net"], ["GET", "HEAD"])]
    assert allowed(Template.of_assembly(stacks_with_settings["own-name"])) == [([f"https://{DOMAIN}"], ["GET", "HEAD"])]
    assert allowed(Template.of_assembly(stacks_with_settings["bare"])) == []


def test_an_own_name_has_its_certificate_and_no_old_tls(stacks_with_settings: Mapping[str, Path]) -> None:
    stack = Template.of_assembly(stacks_with_settings["own-name"])
    found = distribution(stack)
    assert found["Aliases"] == [DOMAIN]
    assert found["ViewerCertificate"] == {
        "AcmCertificateArn": CERTIFICATE,
        "MinimumProtocolVersion": "TLSv1.2_2021",
        "SslSupportMethod": "sni-only",
    }
    assert stack.content["Outputs"]["ConsoleUrl"]["Value"] == f"https://{DOMAIN}"
    name = stack.one("CloudFront::Distribution")[0]
    assert stack.content["Outputs"]["ConsoleName"]["Value"] == {"Fn::GetAtt": [name, "DomainName"]}
    assert stack.functions()["api"]["Environment"]["Variables"]["CONSOLE_URL"] == f"https://{DOMAIN}"
    assert json.loads((stacks_with_settings["own-name"] / "validation-report.json").read_text())["pluginReports"] == []


def test_without_a_console_nothing_of_it_is_there(stacks_with_settings: Mapping[str, Path]) -> None:
    stack = Template.of_assembly(stacks_with_settings["bare"])
    kinds = {each["Type"] for each in stack.content["Resources"].values()}
    assert [kind for kind in kinds if "CloudFront" in kind or kind.startswith("Custom::")] == []
    assert [name for name in stack.content["Resources"] if name.startswith("Console")] == []
    told = stack.functions()["api"]["Environment"]["Variables"]
    assert "FRONT_SECRET" not in told
    assert told["CONSOLE_URL"] == {"Ref": "ConsoleUrl"}
    assert stack.content["Parameters"]["ConsoleUrl"]["Default"] == ""


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"console_domain": DOMAIN}, "need each other"),
        ({"console_certificate": CERTIFICATE}, "need each other"),
        ({"console_domain": "https://x.example", "console_certificate": CERTIFICATE}, "must be a name like"),
        ({"console_domain": "nodots", "console_certificate": CERTIFICATE}, "must be a name like"),
        ({"console_domain": DOMAIN, "console_certificate": CERTIFICATE.replace("us-east-1", "eu-west-1")}, "us-east-1"),
        ({"console": "false", "console_domain": DOMAIN, "console_certificate": CERTIFICATE}, "console=false"),
    ],
)
def test_a_name_that_cloudfront_would_refuse_is_refused_before(options: Mapping[str, str], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        Settings.of(options)


def test_all_files_are_uploaded_with_their_headers_and_the_page_that_names_them_last(stack: Template) -> None:
    (made,) = uploads(stack)
    files = made["Properties"]["Files"]
    assert sorted(each["Key"] for each in files) == sorted(CONSOLE)
    assert files[-1] == {"Key": "index.html", "ContentType": "text/html; charset=utf-8", "CacheControl": "no-cache"}
    cached = {each["Key"]: "immutable" in each["CacheControl"] for each in files}
    assert cached == {name: name.startswith("assets/") for name in CONSOLE}
    assert made["Properties"]["From"]["Key"].endswith(".zip")


def uploads(stack: Template) -> list[dict[str, Any]]:
    return [each for each in stack.content["Resources"].values() if each["Type"] == "Custom::ConsoleFiles"]


def test_what_uploads_them_reads_one_archive_and_writes_one_bucket(
    stack: Template, stacks_with_settings: Mapping[str, Path]
) -> None:
    def allowed(where: Template) -> dict[str, set[str]]:
        role = where.named("Lambda::Function", "Console")[1]["Role"]
        found: dict[str, set[str]] = {}
        for statement in where.statements(role):
            for resource in listed(statement["Resource"]):
                found.setdefault(text(resource), set()).update(listed(statement["Action"]))
        return {name: actions for name, actions in found.items() if "Log" not in name}

    (bucket, _), (made,) = stack.named("S3::Bucket", "Console"), uploads(stack)
    archive = made["Properties"]["From"]
    source = f"arn:<AWS::Partition>:s3:::{text(archive['Bucket'])}/{archive['Key']}"
    assert allowed(stack) == {source: {"s3:GetObject"}, f"<{bucket}.Arn>/*": {"s3:PutObject"}}
    trial = allowed(Template.of_assembly(stacks_with_settings["trial"]))
    assert trial[f"<{bucket}.Arn>/*"] == {"s3:PutObject", "s3:DeleteObject"}  # else the bucket could not be deleted


PATHS = {
    "/": False, "/jobs": False, "/jobs/01ABC/log": False, "/pools/target/linux-24.04": False, "/users/ada.l": False,
    "/index.html": True, "/icon.svg": True, "/manifest.webmanifest": True, "/assets/index-0a1B.js": True,
    "/assets/none": True, "//evil.example/x.y": False,
}  # fmt: skip
"""Whether each is a file."""


@pytest.mark.parametrize("path", PATHS)
def test_pages_are_shown_by_the_index_and_files_are_files(path: str) -> None:
    """As in the local cloud, by the same rule."""
    asked = edge(console_edge.PAGES, {"request": {"uri": path, "headers": {}}})
    assert asked["uri"] == (path if PATHS[path] else "/index.html")
    assert headers.is_file(path) == PATHS[path]


def test_the_address_that_cloudfront_saw_replaces_what_a_viewer_says() -> None:
    """SEC-2."""
    said = {VIEWER: {"value": "203.0.113.9"}, "accept": {"value": "*/*"}}
    asked = edge(console_edge.ADDRESS, {"request": {"uri": "/v1/x", "headers": said}, "viewer": {"ip": "2001:db8::1"}})
    assert asked["headers"] == {VIEWER: {"value": "2001:db8::1"}, "accept": {"value": "*/*"}}


def edge(code: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """What a function of CloudFront makes of a request."""
    script = f"{code}\nconsole.log(JSON.stringify(handler({json.dumps(event)})));"
    program = node.bundled()
    assert program
    done = subprocess.run([str(program), "-e", script], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def test_headers_that_cloudfront_keeps_for_itself_are_not_ours() -> None:
    """Functions may not write these. Source: CloudFront Developer Guide, "Restrictions on edge functions"."""
    reserved = re.compile("x-amz-|x-amzn-|x-edge-|cloudfront-|proxy-|x-cache|x-real-ip|x-forwarded-proto|via|host")
    assert not reserved.match(VIEWER)
    assert not reserved.match(PROOF)
