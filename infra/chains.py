"""The functions that may call themselves again, by a message to a queue of their own or by way of others.

Lambda counts how often a function is called in one chain: by messages that were sent while earlier ones were handled,
which it knows by a header that the AWS SDK passes on. About the seventeenth message of a chain goes to the dead-letter
queue instead, unless the function is allowed to recur. Chains of ours are longer: a machine that takes five minutes to
shut down is asked for every five seconds. Source: Lambda Developer Guide, "Use Lambda recursive loop detection to
prevent infinite loops".

What that protects from, a loop that multiplies or never rests, is kept away otherwise: what a chain moves on is a row,
and where a step is due again later, one message of it is on its way.
"""

from __future__ import annotations

from collections.abc import Mapping

_UNITS = (
    "a unit has one message on its way (`retries.retry_by_message`), after the pause that its driver wants or one that "
    "doubles to ten minutes, and at least a second; none once its driver is done"
)

ENDS: Mapping[str, str] = {
    "schedule": (
        "a job that settles has those judged that depend on it, and they theirs: a graph without cycles. Who serves a "
        "pool asks for more only after grants, so until nobody can be granted anything. A resize is asked for while a "
        "pool above its limit has a free slot, and leaves none"
    ),
    "factory": (
        f"{_UNITS}. A test's worker is searched for at most `MAX_SEARCHES` times. A host has one order, and its "
        "controller is asked after such pauses until the host is there, or its time to come is over"
    ),
    "well": _UNITS,
    "sweep": (
        "a part of a sweep sends no message, and ends when the next sweep begins. A message of a stop brings pools and "
        "units to it for ten seconds, at least one, and the next goes on behind them. One of the account diff lists "
        "factories and wells, at least one, each once"
    ),
    "github_work": (
        "each step of a delivery or a commit leads to the next one. A check is looked at again after five seconds only "
        "while another call has it, or if one changed it meanwhile. The tries of each are counted, to `MAX_TRIES`"
    ),
}
"""Why each chain ends in which a function calls itself. No other function is allowed to."""
