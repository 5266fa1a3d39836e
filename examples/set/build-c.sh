#!/bin/bash
#:
#: name = "build board-c"
#: variety = "basic"
#: output_rules = ["=/work/image.bin"]
#:

set -o errexit
echo "the image of board c" > "$PENSTOCK_WORK/image.bin"
