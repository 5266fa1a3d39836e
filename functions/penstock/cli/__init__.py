"""The `penstock` command: what users and operators type.

app         the tree of commands, and how it ends: exit codes and messages
framework   commands that take the global options anywhere; the session that they share
config      which service, with which token
client      the HTTP API, a method per request; transport: retries, and refusals as errors
output      tables, JSON, ages; screen and follow: a job's log as it happens
commands    one module per group
reference   writes docs/users/cli.md from the commands' own help
"""

__all__ = ["main"]


def main() -> None:
    """The console script."""
    from penstock.cli.app import cli

    cli.main(prog_name="penstock")
