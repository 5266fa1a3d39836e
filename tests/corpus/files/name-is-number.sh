#!/bin/bash
#: name = 1
#: variety = "basic"

echo
# buildomat: wrong type of name
