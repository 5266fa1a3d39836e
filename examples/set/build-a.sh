#!/bin/bash
#:
#: name = "build board-a"
#: variety = "basic"
#: output_rules = ["=/work/image.bin"]
#:

set -o errexit
echo "the image of board a" > "$PENSTOCK_WORK/image.bin"
