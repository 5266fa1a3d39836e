"""What one run of the command knows: the global options, the service, and where output goes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.output import Output

if TYPE_CHECKING:
    from penstock.cli.client import Api
    from penstock.cli.config import Target


@dataclass
class Session:
    """The global options, wherever on the line they stood, and what follows from them."""

    url: str | None = None
    token: str | None = None
    profile: str | None = None
    json: bool = False
    no_color: bool = False

    @cached_property
    def out(self) -> Output:
        """Where results and notices go."""
        return Output(as_json=self.json, color=not (self.no_color or os.environ.get("NO_COLOR")))

    @property
    def config_path(self) -> Path:
        """The configuration file."""
        from penstock.cli import config

        return config.path(os.environ)

    @cached_property
    def target(self) -> Target:
        """The service that the options, the environment and the configuration name. Raises Refused."""
        from penstock.cli import config

        loaded = config.load(self.config_path)
        return config.resolve(loaded, os.environ, url=self.url, token=self.token, profile=self.profile)

    @cached_property
    def api(self) -> Api:
        """The service's API. httpx is loaded here, so that commands that stay at home start at once."""
        from penstock.cli.client import Api
        from penstock.cli.transport import Transport

        return Api(Transport(self.target.url, self.target.token, self.out.notice))


pass_session = click.make_pass_decorator(Session, ensure=True)
