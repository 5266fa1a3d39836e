#!/bin/bash
#:
#: name = "fails"
#: variety = "basic"
#: output_rules = ["/work/evidence.txt"]
#:
# A job that fails still hands over its outputs: that is when they are wanted most.

set -o errexit

echo "what was seen before the end" > "$PENSTOCK_WORK/evidence.txt"
echo "about to fail" >&2
exit 3
