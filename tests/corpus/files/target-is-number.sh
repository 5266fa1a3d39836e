#!/bin/bash
#: name = "a"
#: variety = "basic"
#: target = 3

echo
# buildomat: wrong type of target
