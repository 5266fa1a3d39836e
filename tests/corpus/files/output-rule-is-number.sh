#!/bin/bash
#: name = "a"
#: variety = "basic"
#: output_rules = [1]

echo
# buildomat: wrong type of output_rules
