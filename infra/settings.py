"""What may differ between two deployments of the same stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aws_cdk import RemovalPolicy


@dataclass(frozen=True)
class Settings:
    """Set with `cdk deploy -c name=… -c ephemeral=true`."""

    name: str = "Penstock"
    ephemeral: bool = False

    @staticmethod
    def of(context: Mapping[str, Any]) -> Settings:
        """Settings from the CDK's context, where a value given on the command line is text."""
        ephemeral = str(context.get("ephemeral", False)).lower() in ("true", "1", "yes")
        return Settings(name=str(context.get("name", Settings.name)), ephemeral=ephemeral)

    @property
    def keep(self) -> RemovalPolicy:
        """What becomes of data when the stack is deleted."""
        return RemovalPolicy.DESTROY if self.ephemeral else RemovalPolicy.RETAIN
