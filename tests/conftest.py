"""For all tests: what a shell in the background would take from them."""

from __future__ import annotations

import signal

from hypothesis import settings

# A shell starts what it runs in the background with SIGINT ignored, and every child would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says more about the machine than about the code.
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")
