#!/bin/bash
#:
#: name = "wells"
#: variety = "basic"
#: resources = ["project", "sandbox"]
#: timeout = "10m"
#:
# Has a project on a rack and a sandbox of its own, from the wells of examples/wells.toml.

set -o errexit
set -o nounset
set -o pipefail

echo "the project is $(bmat resource get project name)"
echo "the sandbox is $(bmat resource get sandbox name)"
