#!/bin/bash

#: name = "a"
#: variety = "basic"

echo
# buildomat: no name
# penstock: late lines
# The empty line ends the header. Penstock says so.
