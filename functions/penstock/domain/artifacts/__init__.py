"""Artifacts: stored files, their owners, and how long they are kept."""
