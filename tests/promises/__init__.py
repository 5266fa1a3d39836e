"""docs/internals/promises.md, made from the code: `python -m tests.promises > docs/internals/promises.md`."""
