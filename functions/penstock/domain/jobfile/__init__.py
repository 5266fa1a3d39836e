"""Job files: a script whose header says what the job needs. See docs/users/job-files.md for the format.

parse reads a file; check_key checks one key's value from elsewhere in the same way.
"""

from penstock.domain.jobfile.caches import CacheAsk
from penstock.domain.jobfile.durations import parse_duration
from penstock.domain.jobfile.keys import check_key
from penstock.domain.jobfile.matrix import Matrix
from penstock.domain.jobfile.parse import JobFile, parse
from penstock.domain.jobfile.place import Fault
from penstock.domain.jobfile.posts import Post
from penstock.domain.jobfile.problem import Problem, Problems
from penstock.domain.jobfile.relations import Dependency, Publish, check_asked, check_inputs
from penstock.domain.jobfile.resources import ResourceAsk
from penstock.domain.jobfile.rules import OutputRule, parse_output_rule
from penstock.domain.jobfile.variants import variant, variant_name

__all__ = [
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
    "parse",
    "parse_duration",
    "parse_output_rule",
    "variant",
    "variant_name",
]
