"""docs/promises.md, made from the code: `python -m tests.promises > docs/promises.md`."""
