"""The agent's file as an object in S3: docs/decisions/0076-the-agent-comes-from-storage.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Aws, FileAssetPackaging, Stack, Stage

from penstock import agentfile


@dataclass(frozen=True)
class AgentObject:
    """Where the agent's file is. The key is its SHA-256 in hex, with `.pyz` behind it."""

    bucket: str
    key: str

    @property
    def arn(self) -> str:
        """The ARN of the object, which permits nothing else in the bucket."""
        return f"arn:{Aws.PARTITION}:s3:::{self.bucket}/{self.key}"


def upload(stack: Stack) -> AgentObject:
    """Add the agent's file to what a deployment uploads before it changes the stack.

    Not with `aws_s3_assets.Asset`: its keys are hashes of more than the content.
    """
    stage, name = Stage.of(stack), f"agent.{agentfile.digest()}.pyz"
    assert stage
    Path(stage.asset_outdir, name).write_bytes(agentfile.build())
    asset = stack.synthesizer.add_file_asset(
        source_hash=agentfile.digest(),
        file_name=name,
        packaging=FileAssetPackaging.FILE,
        display_name="Agent",
    )
    return AgentObject(asset.bucket_name, asset.object_key)
