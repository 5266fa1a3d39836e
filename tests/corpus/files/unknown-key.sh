#!/bin/bash
#: name = "a"
#: variety = "basic"
#: taget = "lab"

echo
# buildomat: unknown key
