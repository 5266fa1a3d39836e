#!/bin/bash
#: name = "a"
#: variety = "control"

echo
# buildomat: wrong variety
