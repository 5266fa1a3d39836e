#!/bin/bash
#: name = "a"
#: variety = "basic"
#: output_rules = ["!=/a"]

echo
# buildomat: wrong output rule
