"""One job of a file with a matrix."""

from collections.abc import Mapping
from dataclasses import replace

from penstock.domain.jobfile.caches import fill_cache
from penstock.domain.jobfile.matrix import fill, variable
from penstock.domain.jobfile.parse import JobFile
from penstock.domain.jobfile.rules import OutputRule, parse_output_rule

__all__ = ["variant", "variant_name"]


def variant(file: JobFile, values: Mapping[str, str]) -> JobFile:
    """The job file of one combination: its matrix is filled in, and gone. What comes out of it is still to be checked.

    A name in which no value stands gets all of them: `build (a, fast)`.
    """
    env = {variable(axis): value for axis, value in values.items()}
    return replace(
        file,
        name=variant_name(file, values),
        target=fill(file.target, values),
        env={**env, **{name: fill(content, values) for name, content in file.env.items()}},
        tags={name: fill(content, values) for name, content in file.tags.items()},
        output_rules=tuple(_filled(rule, values) for rule in file.output_rules),
        cache=tuple(fill_cache(each, values) for each in file.cache),
        dependencies=tuple(replace(each, job=fill(each.job, values)) for each in file.dependencies),
        matrix=None,
    )


def variant_name(file: JobFile, values: Mapping[str, str]) -> str:
    """What the job of one combination is called."""
    name = file.name or "job"
    filled = fill(name, values)
    return filled if filled != name else f"{name} ({', '.join(values.values())})"


def _filled(rule: OutputRule, values: Mapping[str, str]) -> OutputRule:
    found = parse_output_rule(fill(rule.text, values))
    return found if isinstance(found, OutputRule) else rule
