"""The words and bounds of the protocol. The document for services is made of them: openapi.py."""

from __future__ import annotations

VERSION = "penstock-v1"
RESOURCES = "/resources"

TIMESTAMP = "Penstock-Timestamp"
REQUEST = "Penstock-Request"
SIGNATURE = "Penstock-Signature"

WINDOW = 300
"""Seconds by which a request may be older or newer than the service's clock. Within them it knows each request's id."""

CREATING, READY, CLEANING, CLEAN, DESTROYING = "creating", "ready", "cleaning", "clean", "destroying"
STATES = (CREATING, READY, CLEANING, CLEAN, DESTROYING)

SECRET_LEAST = 32
"""Characters of the secret that both sides sign with."""

UNIT_CHARS = 64
TEXT_CHARS = 300
"""How much of what a service says in words is kept."""

METADATA_BYTES = 16 * 1024
METADATA_DEPTH = 8
BODY_BYTES = 64 * 1024
HEADER_BYTES = 16 * 1024

PAGE = 500
PAGES = 40
LATER_MOST = 900
"""Seconds to wait at most, whatever a service says. Source: Amazon SQS, DelaySeconds."""
