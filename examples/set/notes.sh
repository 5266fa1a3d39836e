#!/bin/bash
#:
#: name = "notes"
#: variety = "basic"
#: paths = ["docs/**", "*.md", "!docs/users/cli.md"]
#:
# With `penstock job run examples/set --since main` it runs only if this branch changed one of these files.

echo "the notes were changed"
