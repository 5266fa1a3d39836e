"""Folders of job files, and what was submitted of them."""

from __future__ import annotations

from pathlib import Path

from tests.cli.service import Service


def write_job(folder: Path, name: str, *lines: str) -> None:
    """A job file of a folder, with more header lines."""
    header = [f'name = "{name}"', 'variety = "basic"', *lines]
    (folder / f"{name}.sh").write_text("\n".join(["#!/bin/sh", *(f"#: {line}" for line in header), "true\n"]))


def submitted(service: Service) -> dict[str, tuple[dict[str, object], str]]:
    """What was submitted, by path: the body, and the key."""
    made = [(body, headers) for method, path, headers, body in service.asked if (method, path) == ("POST", "/v1/jobs")]
    return {Path(body["path"]).stem: (body, headers["Idempotency-Key"]) for body, headers in made}
