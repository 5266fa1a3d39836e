"""A stack that was deployed to an AWS account, as its deployer sees it."""

from __future__ import annotations

from penstock.cli.errors import Broken, CliError

HINT = "`aws sts get-caller-identity` says whose credentials are in force; --stack and --region say where to look"


def first_operator(stack: str, region: str | None) -> tuple[str, str]:
    """The service's URL and a new token of its first operator. Raises CliError with what AWS answered."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError

        from penstock.admin import create_admin
    except ImportError as error:
        raise CliError(f"this needs {error.name}", "pip install 'penstock[aws]'") from error
    try:
        client = boto3.client("cloudformation", region_name=region)
        (found,) = client.describe_stacks(StackName=stack)["Stacks"]
        outputs = {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}
        table = {"TABLE": outputs["TableName"], "AWS_REGION": client.meta.region_name}
        return outputs["ApiUrl"], create_admin(table)
    except KeyError as error:
        raise Broken(
            f"the stack {stack} has no output {error}: it is not Penstock's, or not deployed whole", HINT
        ) from error
    except (BotoCoreError, ClientError) as error:
        raise CliError(f"AWS refuses: {error}", HINT) from error
