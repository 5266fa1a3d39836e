#!/bin/bash
#:
#: name = "publish"
#: variety = "basic"
#: output_rules = ["=/work/image.txt", "=/work/image.txt.sha256"]
#:
#: [[publish]]
#: from_output = "/work/image.txt"
#: series = "example"
#: name = "image.txt"
#:
#: [[publish]]
#: from_output = "/work/image.txt.sha256"
#: series = "example"
#: name = "image.txt.sha256"
#:
# When it has succeeded, both files have a name for good: `penstock published list --series example` shows them.
# Their version is the commit: penstock job run examples/publish.sh -e GITHUB_SHA=$(git rev-parse HEAD)

set -o errexit
set -o nounset

cd "$PENSTOCK_WORK"
echo "an image of ${GITHUB_SHA:-no commit}" > image.txt
sha256sum image.txt > image.txt.sha256
