"""Penstock: the gate in front of scarce things.

domain     what is true: plain values, no clock, no AWS
ports      what the system needs from the world
usecases   load, decide, commit
store      rows in DynamoDB and their conditional writes
adapters   queues, flows, objects, clock
drivers    factories and wells that a site may choose from
agent      the program on a worker; stands alone
cli        the `penstock` command
local      the same stack on one machine
"""

import gc
import os
from typing import Any

if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    gc.disable()  # until bootstrap.prepare: what an import makes stays, so looking for garbage in it only takes time


def __getattr__(name: str) -> Any:
    """`penstock.lease` for programs, which is loaded when it is used: what runs in the cloud does not need it."""
    if name == "lease":
        from importlib import import_module

        return import_module("penstock.leasing").lease
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
