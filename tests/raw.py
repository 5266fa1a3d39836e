"""Items of the table as they are stored, read without the store."""

import base64
import re
from collections.abc import Mapping
from typing import Any

from penstock.aws import dynamodb
from penstock.kernel.rows import Row

_PACKED = re.compile(r'"packed": ?\{"B": ?"([^"]+)"\}')


def body_of(item: Mapping[str, Any]) -> str:
    """The JSON of an item's row, packed or not."""
    return dynamodb.unpack(item["packed"]["B"]) if "packed" in item else str(item["body"]["S"])


def row_of(item: Mapping[str, Any]) -> Row:
    """The row of an item, but for what the due index says of it."""
    return dynamodb.load(item["kind"]["S"], body_of(item), int(item["version"]["N"]))


def unpacked(sent: str) -> str:
    """A request to DynamoDB, or an answer, with the JSON of rows in the place of packed bodies."""
    return _PACKED.sub(lambda found: dynamodb.unpack(base64.b64decode(found[1])), sent)
