#!/bin/bash
#: name = "a"
#: variety = "basic"
#: timeout = "5m"

echo
# buildomat: unknown key
# penstock: accepted
