#!/bin/bash
#: name = "a"
#: variety = "basic"
#: enabled = true

echo
# buildomat: a word for enable
# The key is called enable.
