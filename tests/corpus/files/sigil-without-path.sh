#!/bin/bash
#: name = "a"
#: variety = "basic"
#: output_rules = ["="]

echo
# buildomat: wrong output rule
