#!/bin/bash
#:
#: name = "build board-b"
#: variety = "basic"
#: output_rules = ["=/work/image.bin"]
#:

set -o errexit
echo "the image of board b" > "$PENSTOCK_WORK/image.bin"
