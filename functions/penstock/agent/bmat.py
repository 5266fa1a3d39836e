"""`bmat`: the command with which a job's script asks its agent for resources, values, tokens and caches.

Each command is a function that takes the parsed arguments and yields the lines to print. It raises Absent when what the
script asked for does not exist. Scripts call `bmat` often, so this module imports nothing else of the agent.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any, NoReturn

ANSWER_SECONDS = 40  # the agent may have to call the service first
AWS_KEYS = {
    "AccessKeyId": "access_key_id",
    "SecretAccessKey": "secret_access_key",
    "SessionToken": "session_token",
    "Expiration": "expiration",
}
ADDRESS_COLUMNS = ("name", "cidr", "first", "last", "count", "family", "network", "mask", "routed", "gateway")
YES_OR_NO: dict[Any, str] = {True: "yes", False: "no"}
POLL_SECONDS = 2.0


class Absent(Exception):
    """What the script asked for does not exist. The message says what does."""


def facts() -> dict[str, Any]:
    """Ask the agent: worker, factory, resources. Raises Absent."""
    return ask({"do": "facts"})


def ask(what: dict[str, Any], seconds: float | None = ANSWER_SECONDS) -> dict[str, Any]:
    """Send the agent a request; with None for `seconds`, wait without a limit. Raises Absent for its errors, too."""
    answer = _ask_agent(json.dumps(what).encode() + b"\n", seconds)
    if "error" in answer:
        raise Absent(str(answer["error"]))
    return answer


def _ask_agent(line: bytes, seconds: float | None) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX) as agent:
            agent.settimeout(seconds)
            agent.connect(os.environ.get("PENSTOCK_SOCKET", ""))
            agent.sendall(line)
            with agent.makefile("rb") as answer:
                return dict(json.load(answer))
    except (OSError, ValueError) as why:
        raise Absent(f"no agent answers ({why}); bmat works in the tasks of a running job") from why


def pick(what: str, name: str, among: dict[str, Any]) -> Any:
    """Look a name up. Raises Absent, which lists the names there are."""
    if name not in among:
        raise Absent(f"there is no {what} {name!r}; there is: {', '.join(sorted(among)) or 'none'}")
    return among[name]


def plain(value: Any) -> str:
    """Return text as it is, anything else as JSON."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def table(rows: list[list[str]], columns: list[str], header: bool) -> Iterator[str]:
    """Yield lines, the first with the names of the columns, if wanted."""
    rows = [[name.upper() for name in columns], *rows] if header else rows
    widths = [max(map(len, cells)) for cells in zip(*rows)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()


def list_resources(args: argparse.Namespace) -> Iterator[str]:
    """List names and types."""
    resources = facts()["resources"]
    rows = [[name, str(resources[name].get("type", ""))] for name in sorted(resources)]
    return table(rows, ["name", "type"], not args.no_header)


def show_resource(args: argparse.Namespace) -> Iterator[str]:
    """Give a resource's metadata, or one value of it."""
    metadata = _resource_metadata(args.name)
    if args.format != "json":
        yield from (aws_config if args.format == "aws-config" else aws_credentials)(args.name, metadata)
    elif args.key is None:
        yield json.dumps(metadata, indent=2, sort_keys=True)
    else:
        yield plain(_metadata_value(f"key of resource {args.name!r}:", args.key, metadata))


def _metadata_value(what: str, key: str, among: Any) -> Any:
    """Look a key up. If no key is called `a.b`, it means b in a. Raises Absent."""
    table_ = among if isinstance(among, dict) else {str(at): each for at, each in enumerate(among)}
    outer, dot, inner = key.partition(".")
    if key not in table_ and dot and isinstance(table_.get(outer), (dict, list)):
        return _metadata_value(f"{what} in {outer!r}", inner, table_[outer])
    return pick(what, key, table_)


def export_resource(args: argparse.Namespace) -> Iterator[str]:
    """Print a resource's metadata as export lines for a shell. Raises Absent if a value cannot be exported."""
    found = variables(args.name, _resource_metadata(args.name), _use_get(args.name))
    return (f"export {name}={shlex.quote(value)}" for name, value in found.items())


def variables(resource: str, metadata: dict[str, Any], hint: str) -> dict[str, str]:
    """Give a resource's metadata as environment variables. Raises Absent, with a hint, if a value cannot be one.

    A table becomes a variable for each of its values; a list becomes one variable, in JSON. A key in capitals, such as
    PGHOST, is also there under its own name: programs know it.
    """
    found: dict[str, tuple[str, str]] = {}
    for key, value in _metadata_leaves("", metadata):
        if "\0" in value:
            raise Absent(f"no variable can hold the zero byte in {key!r}: {hint}")
        for name in _variable_names(resource, key):
            if name in found:
                raise Absent(f"{found[name][0]!r} and {key!r} would both be {name}: {hint}")
            found[name] = key, value
    return {name: value for name, (_, value) in sorted(found.items())}


def _variable_names(resource: str, key: str) -> Iterator[str]:
    name = re.sub(r"\W", "_", f"{resource}_{key}", flags=re.ASCII).upper()
    yield f"{'_' if name[0].isdigit() else ''}{name}"
    if re.fullmatch(r"[A-Z][A-Z0-9_]*", key):
        yield key


def _metadata_leaves(path: str, table_: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in sorted(table_.items()):
        if isinstance(value, dict):
            yield from _metadata_leaves(f"{path}{key}.", value)
        else:
            yield f"{path}{key}", plain(value)


def _use_get(name: str) -> str:
    return f"use `bmat resource get {name} KEY`"


def _resource_metadata(name: str) -> dict[str, Any]:
    metadata: dict[str, Any] = pick("resource", name, facts()["resources"])["metadata"]
    return metadata


def aws_credentials(name: str, metadata: dict[str, Any]) -> Iterator[str]:
    """Print credentials as `credential_process` must. AWS libraries ask again shortly before they expire."""
    missing = sorted(key for key in AWS_KEYS.values() if not metadata.get(key))
    if missing:
        raise Absent(f"resource {name!r} has no AWS credentials: there is no {', '.join(missing)}")
    yield json.dumps({"Version": 1, **{theirs: metadata[ours] for theirs, ours in AWS_KEYS.items()}})


def aws_config(name: str, metadata: dict[str, Any]) -> Iterator[str]:
    """Print an AWS config file that has libraries fetch and renew the credentials."""
    list(aws_credentials(name, metadata))
    command = [shutil.which("bmat") or sys.argv[0], "resource", "get", name, "--format", "aws"]
    yield "[default]"
    if metadata.get("region"):
        yield f"region = {metadata['region']}"
    yield f"credential_process = {' '.join(map(shlex.quote, command))}"


def list_addresses(args: argparse.Namespace) -> Iterator[str]:
    """List address ranges, as buildomat's `bmat` does: without a header, tabs separate the columns.

    Raises Absent for unknown columns, and if a name is wanted that not exactly one range has.
    """
    columns, order = _address_columns(args.columns), _address_columns(args.descending or args.ascending)
    found = list(_address_ranges())
    if args.name is not None:
        found = [_only_range(args.name, found)]
    found.sort(key=lambda row: [row[column] for column in order], reverse=bool(args.descending))
    rows = [[str(row[column]) for column in columns] for row in found]
    return ("\t".join(row) for row in rows) if args.no_header else table(rows, columns, header=True)


def _only_range(name: str, ranges: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the one range of this name. Raises Absent if there is none, or another."""
    found = [row for row in ranges if row["name"] == name]
    if len(found) > 1:
        raise Absent(f"{len(found)} address ranges have the name {name!r}; there must be one")
    return pick("address range", name, {row["name"]: row for row in ranges})  # type: ignore[no-any-return]


def _address_columns(names: str) -> list[str]:
    """Return the names of columns, separated by commas. Raises Absent for an unknown one."""
    columns = [name.strip().lower() for name in names.split(",")] if names else []
    for column in columns:
        pick("column", column, dict.fromkeys(ADDRESS_COLUMNS))
    return columns


def _address_ranges() -> Iterator[dict[str, Any]]:
    """Yield the columns of each range of each resource. Report ranges that are none, and leave them out."""
    for name, resource in facts()["resources"].items():
        for at, row in enumerate(resource["metadata"].get("addresses") or []):
            try:
                yield _address_range(row)
            except (AttributeError, KeyError, TypeError, ValueError) as why:
                text = f"there is no {why}" if isinstance(why, KeyError) else str(why)
                print(f"bmat: `addresses`[{at}] of resource {name!r} is left out: {text}", file=sys.stderr, flush=True)


def _address_range(row: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a range. Without `first` or `count` it is all of its network that hosts can have.

    Raises KeyError, TypeError or ValueError for a range that is none.
    """
    import ipaddress  # here, because its import takes longer than everything else

    network = ipaddress.ip_network(str(row["cidr"]), strict=False)
    spare = 1 if network.num_addresses > 2 and network.version == 4 else 0  # network and broadcast address
    first = ipaddress.ip_address(str(row["first"])) if "first" in row else network[spare]
    count = row["count"] if "count" in row else int(network[-1 - spare]) - int(first) + 1
    if type(count) is not int or count < 1:
        raise ValueError(f"{row['cidr']} from {first} with {count!r} addresses: it needs at least 1")
    last = first + (count - 1)
    ends = (network.network_address, network.broadcast_address) if spare or "first" in row else ()
    if first not in network or last not in network or (network.version == 4 and last in ends):
        raise ValueError(f"{first} to {last} is not within the hosts of {row['cidr']}")
    return {
        "name": plain(row.get("name")) or "-",
        "cidr": row["cidr"],
        "first": str(first),
        "last": str(last),
        "count": count,
        "family": "inet6" if network.version == 6 else "inet",
        "network": str(network.network_address),
        "mask": str(network.netmask),
        "routed": YES_OR_NO.get(row.get("routed"), "-"),
        "gateway": plain(row.get("gateway")) or "-",
    }


def show_factory(args: argparse.Namespace) -> Iterator[str]:
    """Print the factory's name, which is its id, or the worker's id. Raises Absent."""
    yield plain(facts()["worker" if args.fact == "private" else "factory"])


def get_value(args: argparse.Namespace) -> Iterator[str]:
    """Print a value. Wait until it exists."""
    found = ask({"do": "get", "name": args.name})
    while not found["there"]:
        if args.no_wait:
            raise Absent(f"there is no value {args.name!r}")
        time.sleep(POLL_SECONDS)
        found = ask({"do": "get", "name": args.name})
    yield str(found["value"])


def put_value(args: argparse.Namespace) -> Iterator[str]:
    """Put a value: the argument, or stdin without its last line end."""
    value = sys.stdin.read().removesuffix("\n") if args.value is None else args.value
    ask({"do": "put", "name": args.name, "value": value, "secret": args.secret})
    return iter(())


def identity_token(args: argparse.Namespace) -> Iterator[str]:
    """Print a new token for an audience; as JSON also when it expires."""
    found = ask({"do": "identity", "audience": args.audience})
    yield json.dumps(found) if args.format == "json" else str(found["token"])


def start_process(args: argparse.Namespace) -> Iterator[str]:
    """Start a background process in this folder, with this environment."""
    ask({"do": "process", "name": args.name, **_command_request([args.program, *args.arguments])})
    return iter(())


def add_post(args: argparse.Namespace) -> Iterator[str]:
    """Have a command run after the tasks in this folder, with this environment."""
    ask({"do": "post", "when": args.when, "name": args.name, **_command_request([args.program, *args.arguments])})
    return iter(())


def _command_request(command: list[str]) -> dict[str, Any]:
    env = {name: value for name, value in os.environ.items() if name != "PENSTOCK_SOCKET"}
    return {"command": command, "cwd": os.getcwd(), "env": env}


def restore_cache(args: argparse.Namespace) -> Iterator[str]:
    """Print `hit` or `partial`. Raises Absent for a miss."""
    result = _ask_cache("restore", args)
    if result["word"] == "miss":
        raise Absent(result["text"])
    yield from _show_cache_result(result)


def save_cache(args: argparse.Namespace) -> Iterator[str]:
    """Print `saved`, `there` or `failed`. A cache that was not saved does not fail the job."""
    yield from _show_cache_result(_ask_cache("save", args))


def _ask_cache(what: str, args: argparse.Namespace) -> dict[str, str]:
    cache = {"name": args.name, "paths": args.paths, "key": args.key, "restore_keys": getattr(args, "restore_keys", [])}
    return ask({"do": "cache", "what": what, "cwd": os.getcwd(), **cache}, seconds=None)


def _show_cache_result(result: dict[str, str]) -> Iterator[str]:
    print(f"bmat: {result['text']}", file=sys.stderr, flush=True)
    yield result["word"]


class Parser(argparse.ArgumentParser):
    """Exits with 2 on wrong usage also when stderr is closed or full, which argparse does since Python 3.11.4."""

    def error(self, message: str) -> NoReturn:
        with contextlib.suppress(AttributeError, OSError):
            super().error(message)
        sys.exit(2)


def parser() -> Parser:
    """Return a parser whose result has `action`: what to call with it for the lines to print."""
    top = Parser(
        prog="bmat",
        description="Talk to Penstock from a job's script: read resources, exchange values, restore caches, and more.",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_resource_commands(commands.add_parser("resource", help="read the resources that this job holds"))
    _add_store_commands(commands.add_parser("store", help="exchange values with the user of this job"))
    _add_identity_commands(
        commands.add_parser("identity", help="get tokens that prove to other services which job this is")
    )
    _add_process_commands(commands.add_parser("process", help="start processes that run beside this task"))
    _add_post_arguments(_add(commands, "post", add_post, "run a command after the tasks of this job"))
    _add_factory_arguments(_add(commands, "factory", show_factory, "print where this job runs"))
    _add_address_commands(commands.add_parser("address", help="list the address ranges that this job may use"))
    _add_cache_commands(
        commands.add_parser("cache", help="restore files of earlier jobs, and save files for later ones")
    )
    return top


def _add_resource_commands(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION")
    _add_list(actions, list_resources, "list the names and types of the job's resources")
    get = _add(actions, "get", show_resource, "print a resource's metadata as JSON, or one value of it")
    get.add_argument("name", metavar="NAME", help="the resource's name in the job file")
    get.add_argument("key", metavar="KEY", nargs="?", help="print only this value; a.b is b in a")
    text = "aws: for credential_process; aws-config: an AWS config file that uses it"
    get.add_argument("--format", choices=["json", "aws", "aws-config"], default="json", help=text)
    env = _add(actions, "env", export_resource, 'print the metadata as export lines: eval "$(bmat resource env NAME)"')
    env.add_argument("name", metavar="NAME", help="the resource's name in the job file")


def _add_store_commands(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION")
    get = _add(actions, "get", get_value, "print a value; wait until there is one")
    get.add_argument("-W", dest="no_wait", action="store_true", help="do not wait: exit with 1 if there is none")
    get.add_argument("name", metavar="NAME")
    put = _add(actions, "put", put_value, "store a value; it replaces one of the same name")
    put.add_argument("-s", dest="secret", action="store_true", help="mark it secret: only this job can read it")
    put.add_argument("name", metavar="NAME")
    put.add_argument("value", metavar="VALUE", nargs="?", help="default: stdin")


def _add_identity_commands(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION")
    get = _add(actions, "token", identity_token, "print an identity token; it is valid for at most an hour")
    text = "the service that the token is for, such as sts.amazonaws.com; the site must allow it"
    get.add_argument("--audience", required=True, metavar="AUDIENCE", help=text)
    get.add_argument("--format", choices=["text", "json"], default="text", help="json also prints when it expires")


def _add_process_commands(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION")
    start = _add(
        actions, "start", start_process, "start a command, which ends with this task; its output is in the log"
    )
    start.add_argument("name", metavar="NAME", help="unique in this task; its streams are bg.NAME.stdout and .stderr")
    _add_command_arguments(start)


def _add_post_arguments(command: argparse.ArgumentParser) -> None:
    text = "success: all tasks succeeded; failure: one failed; always: both. Never if the job is cancelled or times out"
    command.add_argument("when", choices=["success", "failure", "always"], help=text)
    command.add_argument("name", metavar="NAME", help="its name in the log")
    _add_command_arguments(command)


def _add_command_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("program", metavar="COMMAND")
    command.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER)


def _add_cache_commands(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION")
    text = "restore saved files: prints hit, or partial if only a restore key matches; exits with 1 for a miss"
    restore = _add(actions, "restore", restore_cache, text)
    _add_cache_arguments(restore)
    text = "if no entry has the key itself, restore the newest whose key starts with K; may be given again"
    restore.add_argument("--restore-key", dest="restore_keys", action="append", default=[], metavar="K", help=text)
    text = "save the files at these paths: prints saved, there (the key has an entry already) or failed"
    _add_cache_arguments(_add(actions, "save", save_cache, text))


def _add_cache_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", metavar="NAME")
    command.add_argument("paths", metavar="PATH", nargs="+", help="a file or folder: the same for save and restore")
    text = 'what the files depend on; {{ hash "FILE" }} is the digest of a file, or of all files that match'
    command.add_argument("--key", default="", metavar="K", help=text)


def _add_factory_arguments(command: argparse.ArgumentParser) -> None:
    text = "id and name: the factory's name; private: the worker's id"
    command.add_argument("fact", choices=["id", "name", "private"], help=text)


def _add_address_commands(command: argparse.ArgumentParser) -> None:
    show_all = _add_list(
        command.add_subparsers(required=True, metavar="ACTION"), list_addresses, "list the address ranges"
    )
    show_all.add_argument("-f", dest="name", metavar="NAME", help="the range of this name: exactly one must have it")
    text = f"columns, separated by commas; there are {', '.join(ADDRESS_COLUMNS)}"
    show_all.add_argument("-o", dest="columns", default="name,cidr,first,last,count", metavar="COLUMNS", help=text)
    show_all.add_argument("-s", dest="ascending", default="", metavar="COLUMNS", help="sort by these columns")
    show_all.add_argument("-S", dest="descending", default="", metavar="COLUMNS", help="the same, the largest first")
    show_all.add_argument("-p", action="store_true", help="exact numbers, which they always are")


def _add(commands: Any, name: str, action: Any, text: str, aliases: tuple[str, ...] = ()) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text, aliases=aliases)
    added.set_defaults(action=action)
    return added


def _add_list(commands: Any, action: Any, text: str) -> argparse.ArgumentParser:
    added = _add(commands, "list", action, text, ("ls",))
    added.add_argument("-H", dest="no_header", action="store_true", help="no header line")
    return added


def bmat(arguments: list[str]) -> int:
    """Run a command. Return the exit code: 1 if something does not exist, 2 for wrong usage."""
    args = parser().parse_args(arguments)
    try:
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogatepass")  # type: ignore[union-attr]
        for line in args.action(args):
            print(line)
    except Absent as why:
        print(f"bmat: {why}", file=sys.stderr)
        return 1
    return 0
