"""`python -m tests.promises`: print docs/internals/promises.md."""

from __future__ import annotations

from tests.promises.page import page

if __name__ == "__main__":
    print(page(), end="")
