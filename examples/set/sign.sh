#!/bin/bash
#:
#: name = "sign"
#: variety = "basic"
#: output_rules = ["=/work/sums.txt"]
#:
#: [dependencies.board-a]
#: job = "build board-a"
#:
#: [dependencies.board-b]
#: job = "build board-b"
#:
#: [dependencies.board-c]
#: job = "build board-c"
#:
# Waits for the three builds. What each of them kept is below /input, by the path that it had there.

set -o errexit
cd "$PENSTOCK_INPUT"
sha256sum */work/image.bin | tee "$PENSTOCK_WORK/sums.txt"
