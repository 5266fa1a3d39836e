#!/bin/bash
#: name = "a"
#: variety = "basic"
#: disabled = false

echo
# buildomat: a word for enable
