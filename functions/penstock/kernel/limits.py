"""How big things may be. Every bound that a client can hit is here, with its unit.

A DynamoDB item holds 400 KB, and a job's script and settings live in one item: hence SCRIPT_BYTES.
"""

from __future__ import annotations

from penstock.kernel.frozen import dataclass

SCRIPT_BYTES = 256 * 1024
ROW_BYTES = 360 * 1024
BODY_BYTES = 1024 * 1024
NAME_CHARS = 128

IDEMPOTENCY_KEY_CHARS = 255
TAGS = 100
TAG_NAME_CHARS = 128
TAG_VALUE_CHARS = 1024
ENV_ENTRIES = 100
ENV_BYTES = 32 * 1024
OUTPUT_RULES = 100
OUTPUT_RULE_CHARS = 1024
RESOURCES = 20
DEPENDENCIES = 64
VALUES = 100
VALUE_BYTES = 10 * 1024
INPUTS = 25
POSTS = 20
IDENTITIES = 200
MATRIX = 256
WAITING_DEPENDENTS = 1000
RESOURCE_OPTIONS_BYTES = 8 * 1024
SERVICES = 5
SERVICE_READY_CHARS = 1024
LABELS_CHARS = 500
THING_LABELS = 50
THINGS_BYTES = 64 * 1024
PARTS = 32
"""Into how many parts a host may be divided that jobs share: a commit that gives some of them names all."""

THINGS_SLOTS = 1000
PRIORITY = 100
RETRIES = 10
HOLD_SECONDS = 7 * 24 * 3600
TIMEOUT_SECONDS = 7 * 24 * 3600
QUEUE_SECONDS = 21 * 24 * 3600
EVENTS_PER_BATCH = 500
EVENT_BATCH_BYTES = 192 * 1024
EVENT_LINE_BYTES = 16 * 1024
STREAM_CHARS = 64
LOG_EVENTS = 2_000_000
LOG_BYTES = 256 * 1024 * 1024
OUTPUTS = 1000
DEPENDENTS = 1000
OWNERS = 100
OUTPUTS_PER_CALL = 50
OUTPUTS_WITH_REPORT = 50
OUTPUT_PATH_CHARS = 1024
PATHS = 100
PATH_CHARS = 256
CACHES = 10
CACHE_PATHS = 20
CACHE_PATH_CHARS = 256
CACHE_NAME_CHARS = 128
CACHE_KEY_CHARS = 512
CACHE_SCOPE_CHARS = 128
CACHE_RESTORE_KEYS = 10
CACHE_SAVES = 50
CACHE_ENTRIES = 1000


DRIVER_TEXT_CHARS = 2000
"""How much is kept of what a driver says: of its errors, and of why it is not done."""


PAGE = 100


@dataclass(frozen=True)
class Bound:
    """How many characters a text of a request may have, or from what to what a number may be."""

    most: int
    least: int = 0


TRANSACTION_ITEMS = 100
"""How many rows one commit may name. Source for these five: Amazon DynamoDB Developer Guide, "Quotas" and
"Constraints". KB and MB there are powers of two.
"""

BATCH_KEYS = 100
"""How many rows one request reads by their keys."""

TRANSACTION_BYTES = 4 * 1024 * 1024

ITEM_BYTES = 400 * 1024
"""How big one row may be as an item: the names and values of all its attributes."""

PARTITION_KEY_BYTES = 2048

SORT_KEY_BYTES = 1024
