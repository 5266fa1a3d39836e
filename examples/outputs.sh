#!/bin/bash
#:
#: name = "outputs"
#: variety = "basic"
#: output_rules = [
#:   "=/work/out/*.txt",        # the job fails if there is none
#:   "%/work/**/*.log",         # may still be growing while it is kept
#:   "!/work/out/scratch.txt",  # never kept, whatever the other rules say
#: ]
#:
# Leaves files below the work directory; those that match a rule are kept.

set -o errexit
set -o nounset

mkdir -p "$PENSTOCK_WORK/out" "$PENSTOCK_WORK/logs"
cd "$PENSTOCK_WORK"
date -u > out/when.txt
sha256sum out/when.txt > out/sums.txt
echo "not worth keeping" > out/scratch.txt
echo "all done" > logs/run.log
