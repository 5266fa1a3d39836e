"""The `penstock` command: what users and operators type.

app         the tree of commands, exit codes and error messages
command     commands that take the global options anywhere; the session; types of option values
config      which service to use, with which token
client      the HTTP API, a method per request: retries, and refusals as errors
output      tables, JSON; times: ages and durations
follow      a job's log while the job runs
submit      job files become requests; sets: several at once; transfer: uploads and downloads
commands    one module per group of commands
reference   writes docs/users/cli.md from the commands' own help
"""

__all__ = ["main"]


def main() -> None:
    """The console script."""
    from penstock.cli.app import cli

    cli.main(prog_name="penstock")
