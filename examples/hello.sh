#!/bin/bash
#:
#: name = "hello"
#: variety = "basic"
#: target = "ubuntu-24.04"
#: output_rules = ["=/work/greeting.txt"]
#:

echo "hello from job $PENSTOCK_JOB_ID, attempt $PENSTOCK_ATTEMPT, on $PENSTOCK_TARGET"
echo "I must be done by $PENSTOCK_DEADLINE"
echo "hello, whoever reads this" > "$PENSTOCK_WORK/greeting.txt"
