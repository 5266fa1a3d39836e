#!/bin/bash
#: name = ""
#: variety = "basic"

echo
# buildomat: accepted
# penstock: `name` is empty
