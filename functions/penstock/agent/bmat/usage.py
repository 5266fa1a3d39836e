"""The command line of `bmat`."""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import Any, NoReturn

from . import addresses, cache, factory, identity, process, resources, store


class Parser(argparse.ArgumentParser):
    """Exits with 2 on wrong usage also when stderr is closed or full, which argparse does since Python 3.11.4."""

    def error(self, message: str) -> NoReturn:
        with contextlib.suppress(AttributeError, OSError):
            super().error(message)
        sys.exit(2)


def parser() -> Parser:
    """Return a parser whose result has `action`: what to call with it for the lines to print."""
    top = Parser(prog="bmat", description="Ask about the job that this script belongs to.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _resource(commands.add_parser("resource", help="the resources that this job holds"))
    _store(commands.add_parser("store", help="values that this job and its user exchange"))
    _identity(commands.add_parser("identity", help="what this job shows to others to say who it is"))
    _process(commands.add_parser("process", help="processes that run beside this task"))
    _post(_add(commands, "post", process.post, "have a command run after the tasks of this job"))
    _factory(_add(commands, "factory", factory.show, "where this job runs"))
    _address(commands.add_parser("address", help="address ranges that this job may use"))
    _cache(commands.add_parser("cache", help="files that later jobs find where this one had them"))
    return top


def _resource(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION")
    _add_list(actions, resources.show_all, "names and types of the job's resources")
    get = _add(actions, "get", resources.show, "print a resource's metadata as JSON, or one value of it")
    get.add_argument("name", metavar="NAME", help="the resource's name in the job file")
    get.add_argument("key", metavar="KEY", nargs="?", help="print only this value; a.b is b in a")
    text = "aws: for credential_process; aws-config: an AWS config file that has it"
    get.add_argument("--format", choices=["json", "aws", "aws-config"], default="json", help=text)
    env = _add(actions, "env", resources.export, 'print export lines: eval "$(bmat resource env NAME)"')
    env.add_argument("name", metavar="NAME", help="the resource's name in the job file")


def _store(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION")
    get = _add(actions, "get", store.get, "print a value; wait until there is one")
    get.add_argument("-W", dest="no_wait", action="store_true", help="do not wait: 1 when there is none")
    get.add_argument("name", metavar="NAME")
    put = _add(actions, "put", store.put, "put a value, in the place of one of that name")
    put.add_argument("-s", dest="secret", action="store_true", help="show it to nobody but this job")
    put.add_argument("name", metavar="NAME")
    put.add_argument("value", metavar="VALUE", nargs="?", help="default: what stdin says")


def _identity(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION")
    get = _add(actions, "token", identity.token, "print an identity token, signed by the service: at most an hour long")
    text = "whom it is for, as the site allows it: sts.amazonaws.com"
    get.add_argument("--audience", required=True, metavar="AUDIENCE", help=text)
    get.add_argument("--format", choices=["text", "json"], default="text", help="json: also when it ends")


def _process(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION")
    start = _add(
        actions, "start", process.start, "start a command, which ends with this task; its output is in the log"
    )
    start.add_argument("name", metavar="NAME", help="of this task alone; its streams are bg.NAME.stdout and .stderr")
    _add_command(start)


def _post(command: argparse.ArgumentParser) -> None:
    text = "after tasks that succeeded, of which one failed, or both; not when the job is cancelled or times out"
    command.add_argument("when", choices=["success", "failure", "always"], help=text)
    command.add_argument("name", metavar="NAME", help="what it is called in the log")
    _add_command(command)


def _add_command(command: argparse.ArgumentParser) -> None:
    command.add_argument("program", metavar="COMMAND")
    command.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER)


def _cache(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION")
    text = "put in place what was saved: prints hit, or partial where only a beginning fits; 1 when there is nothing"
    restore = _add(actions, "restore", cache.restore, text)
    _add_entry(restore)
    text = "take the newest whose key begins like this, if none has the key itself; may be given again"
    restore.add_argument("--restore-key", dest="restore_keys", action="append", default=[], metavar="K", help=text)
    text = "keep what is at these paths; prints saved, there (the first to save a key has it) or failed"
    _add_entry(_add(actions, "save", cache.save, text))


def _add_entry(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", metavar="NAME")
    command.add_argument("paths", metavar="PATH", nargs="+", help="a file or folder: the same for save and restore")
    text = 'what the files depend on; {{ hash "FILE" }} stands for the digest of a file, or of all that match'
    command.add_argument("--key", default="", metavar="K", help=text)


def _factory(command: argparse.ArgumentParser) -> None:
    text = "id and name: the factory; private: the worker, as the factory knows it"
    command.add_argument("fact", choices=["id", "name", "private"], help=text)


def _address(command: argparse.ArgumentParser) -> None:
    show_all = _add_list(command.add_subparsers(required=True, metavar="ACTION"), addresses.show_all, "list them")
    show_all.add_argument("-f", dest="name", metavar="NAME", help="only ranges of this name")
    text = f"columns, with commas between them; there are {', '.join(addresses.COLUMNS)}"
    show_all.add_argument("-o", dest="columns", default="name,cidr,first,last,count", metavar="COLUMNS", help=text)


def _add(commands: Any, name: str, action: Any, text: str, aliases: tuple[str, ...] = ()) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text, aliases=aliases)
    added.set_defaults(action=action)
    return added


def _add_list(commands: Any, action: Any, text: str) -> argparse.ArgumentParser:
    added = _add(commands, "list", action, text, ("ls",))
    added.add_argument("-H", dest="no_header", action="store_true", help="no header line")
    return added
