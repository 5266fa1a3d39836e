"""Writes docs/users/cli.md from the commands' own help: `python -m penstock.cli.reference > docs/users/cli.md`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from penstock.cli.app import cli
from penstock.cli.command import Group

WIDTH = 100
HEAD = """# The `penstock` command

<!-- made by `python -m penstock.cli.reference` from the commands' own help; a test compares it with the code -->

This page has all commands, with the text that `--help` prints. For your first job, see the [quick start](README.md).

Every command also takes `--json`, `--help` and the other options of `penstock` itself, before or after its name. `D`
stands for a duration, such as `90s`, `30m`, `1h30m` or `7d`. Commands and options for *operators only* need the
privilege `admin`.

## Naming a job

Every command that takes a `JOB` takes

- its id
- the first characters of its id, in either case, if only one of your jobs has an id that begins with them. If several
  do, the command does nothing and names the newest five of them. Only your own jobs, as `penstock job list` shows them,
  are looked at: another's job needs its whole id
- `-` for your newest job

```
penstock job run build.sh -W
penstock job tail -
```

Commands for workers, resources and your cache entries take the first characters of an id, too, with or without the
`w-` or `r-` at its start. The id of an artifact has to be given whole. Whatever a command prints and sends has whole
ids. Jobs that were submitted in the same second usually have ids that begin with the same 8 characters.

## Lists

Commands that print a list take these options, besides those that their sections name:

- `--columns A,B` shows these columns in this order: titles of the table, in either case, or keys of the JSON, such as
  `times.started` or `resources.0.slot`.
- `--sort COLUMN` sorts by a column, `--sort -COLUMN` in reverse. Entries without a value come last. Only what is listed
  is sorted: with `--limit 50`, the newest 50.
- `--format FORMAT` takes one of
  - `table`. On a terminal, columns are shortened until the table fits. Columns that find no room are left out, and a
    line on stderr names them. Ids are never shortened. In pipes and files, tables are as wide as they need to be, and
    times are absolute
  - `json`, as `--json`: the API's own objects
  - `jsonl`: one object per line
  - `csv`: the columns of the table, after a line of titles
  - `template='{id} {state}'`: one line per entry. Fields are named as for `--columns`; `\\t` and `\\n` stand for a tab
    and a line break, `{{` and `}}` for braces
- `--query EXPR` prints what a [JMESPath](https://jmespath.org) expression selects of the JSON, as `aws --query` does.
  It works with all commands that print JSON. A result that is a single text is printed without quotes; with
  `--format jsonl`, so is each text of an array.

```
penstock job list --sort -times.settled --columns id,name,times.settled
penstock job list --query "[?outcome=='failed'].id" --format jsonl
penstock worker list --format template='{id} {job}'
```

## Completion

`penstock completion bash`, `zsh` or `fish` prints a script for your shell. Besides commands and options it completes
jobs, pools, targets, resource types, factories, wells, workers, resources, and the outputs of a job; `zsh` and `fish`
also show the state and name of a job. The service is asked each time you press Tab. If it does not answer within 0.7 s,
nothing is offered.

## Errors

Messages go to stderr, results to stdout. With `--json` or `--format json`, an error is one line of JSON, the last line
on stderr. It always has these keys:

- `code`: a stable word. Errors of the service have the service's, such as `job-not-found`; others are `usage`,
  `id-not-found`, `id-not-unique`, `not-penstock`, `unreachable`, `interrupted`, `internal` and `error`
- `detail`: what is wrong
- `hint`: what you can do, or null
- `exit_code`: the exit code of `penstock`

An error of the service also has the other members of its problem document: `type`, `title`, `status` and `errors`.
`id-not-unique` has `candidates`, at most five ids that fit, and `more`, whether there are others. Where a message for
people has further lines, `lines` has them.

## Which service

`penstock` takes the URL of the service, and your token, from the first of these that has it:

1. the options `--url` and `--token`
2. the variables `PENSTOCK_URL` and `PENSTOCK_TOKEN`
3. a profile: the one that `--profile` names; else `PENSTOCK_PROFILE`; else the one that you signed in to last with
   `penstock login`, or chose with `penstock profile use`; else `local`, which `penstock local up` makes

Profiles are in `~/.config/penstock/config.toml`. The token of a profile is only sent to the URL of that profile.

```toml
default_profile = "team"

[profile.team]
url = "https://penstock.example.com"
token = "..."
```
"""
EVERYWHERE = re.compile(
    r"^  (?:--json|-h, --help|--query EXPR|--columns A,B|--sort COLUMN|--format FORMAT) .*\n?(?: {8,}.*\n?)*",
    re.MULTILINE,
)
"""Options that every command has, or every list: the page describes them once."""


def sections(command: click.Command, context: click.Context) -> Iterator[str]:
    """A section for a command and for each below it."""
    depth = "#" * min(4, 2 + context.command_path.count(" "))
    help = command.get_help(context).rstrip()
    if context.parent:
        help = EVERYWHERE.sub("", help).replace("Options:\n\n", "").removesuffix("Options:\n").rstrip()
    yield f"{depth} {context.command_path}\n\n```\n{help}\n```\n"
    if isinstance(command, Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below:
                yield from sections(below, click.Context(below, context, name, terminal_width=WIDTH))


def reference() -> str:
    """The whole page."""
    settings = {**cli.context_settings, "terminal_width": WIDTH}
    context = click.Context(cli, None, "penstock", **settings)
    return "\n".join([HEAD, *sections(cli, context)])


if __name__ == "__main__":
    click.echo(reference(), nl=False)
