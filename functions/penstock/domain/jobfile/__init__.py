"""Job files: a script whose header says what the job needs. See docs/users/job-files.md for the format.

`parse` reads a file; `check_key` checks the value of one key from a request or an option in the same way.
"""

from penstock.domain.jobfile.matrix import Matrix
from penstock.domain.jobfile.parse import (
    TOOLCHAIN_FILE,
    JobFile,
    check_key,
    name_in,
    parse,
    variant,
    variant_name,
)
from penstock.domain.jobfile.resources import ResourceAsk
from penstock.domain.jobfile.sections import (
    CacheAsk,
    Dependency,
    OutputRule,
    Post,
    Publish,
    check_asked,
    check_inputs,
    parse_output_rule,
)
from penstock.kernel.errors import Problem, Problems
from penstock.toml.checks import Fault, parse_duration

__all__ = [
    "TOOLCHAIN_FILE",
    "CacheAsk",
    "Dependency",
    "Fault",
    "JobFile",
    "Matrix",
    "OutputRule",
    "Post",
    "Problem",
    "Problems",
    "Publish",
    "ResourceAsk",
    "check_asked",
    "check_inputs",
    "check_key",
    "name_in",
    "parse",
    "parse_duration",
    "parse_output_rule",
    "variant",
    "variant_name",
]
