"""The conformance kit: what every driver promises, asked of a driver. See docs/drivers/writing-a-driver.md.

    rig        a driver as the checks see it: how to make it, call it, and wait for it
    halfway    a call that ends at any of its lines, as a function that dies does
    checks     what is asked, one function each
    report     all checks, and what came of them

`penstock driver test` runs it, and tests/contracts do with every driver of ours.
"""

from penstock.testing.contract.checks import CHECKS
from penstock.testing.contract.rig import Broken, Rig

__all__ = ["CHECKS", "Broken", "Rig"]
