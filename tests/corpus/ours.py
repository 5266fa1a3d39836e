"""What penstock.jobfile says of a file, in the oracle's words."""

from __future__ import annotations

import re
from typing import Any

from penstock.domain.jobfile import JobFile, Problem, parse
from tests.corpus.oracle import ACCEPTED, Verdict

WORDS = (
    (r"not text in UTF-8|a NUL byte", "not text"),
    (r"must have an interpreter line|the file is empty", "no interpreter line"),
    (r"not TOML|nested too deeply", "not TOML"),
    (r"unknown key `(enabled|disable|disabled)`", "a word for enable"),
    (r"the header has no `(\w+)`", "no {}"),
    (r"`variety` cannot be", "wrong variety"),
    (r"unknown key", "unknown key"),
    (r"the job depends on itself", "a circle"),
    (r"`(dependencies|publish)(?:\.[^`]*)?` has no `(\w+)`", "no {1} in {0}"),
    (r"`output_rules`: ", "wrong output rule"),
    (r"`(\w+)(?:\.[^`]*)?` wants", "wrong type of {}"),
    (r"these `#:` lines are never read", "late lines"),
)
"""What a problem's message has in it, and which rule that is."""


def read(data: bytes) -> tuple[Verdict, frozenset[str]]:
    """What we say, and all the rules that a refused file breaks: we tell of each, the format of the first."""
    found = parse(data, "job.sh")
    if isinstance(found, JobFile):
        return Verdict(ACCEPTED, _parsed(found)), frozenset()
    return Verdict("refused"), frozenset(_rule(each) for each in found.items)


def agree(asked: Verdict, found: Verdict, rules: frozenset[str]) -> bool:
    """Whether both say the same. Where the header was cut short, we say that, and not what is missing for it."""
    if asked.rule == ACCEPTED:
        return found == asked
    explained = {"late lines"} if asked.rule in ("no name", "no variety") else set()
    return found.rule != ACCEPTED and bool(rules & {asked.rule, *explained})


def _parsed(file: JobFile) -> dict[str, Any]:
    job: dict[str, Any] = {
        "name": file.name,
        "variety": "basic",
        "enable": file.enable,
        "dependencies": {each.name: each.job for each in file.dependencies},
    }
    if not file.enable:
        return job
    return job | {
        "target": file.target,
        "output_rules": [
            [rule.path, rule.ignore, rule.require_match, rule.size_change_ok] for rule in file.output_rules
        ],
        "rust_toolchain": file.rust_toolchain,
        "access_repos": list(file.access_repos),
        "publish": [[each.from_output, each.series, each.name] for each in file.publish],
        "skip_clone": file.skip_clone,
    }


def _rule(problem: Problem) -> str:
    for pattern, rule in WORDS:
        found = re.search(pattern, problem.message)
        if found:
            return rule.format(*found.groups())
    return problem.message
