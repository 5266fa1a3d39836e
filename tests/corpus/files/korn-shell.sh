#!/bin/ksh
#: name = "a"
#: variety = "basic"

echo
# buildomat: accepted
# Only the first two characters of the first line count.
