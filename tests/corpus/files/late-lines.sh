#!/bin/bash
#: name = "a"
#: variety = "basic"

#: target = "lab"

echo
# buildomat: accepted
# penstock: late lines
# buildomat ignores the line below the header.
