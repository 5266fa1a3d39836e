#!/bin/bash
#: name = "a"
#: variety = "basic"
#: enable = "no"

echo
# buildomat: wrong type of enable
