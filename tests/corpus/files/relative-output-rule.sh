#!/bin/bash
#: name = "a"
#: variety = "basic"
#: output_rules = ["out/*"]

echo
# buildomat: wrong output rule
