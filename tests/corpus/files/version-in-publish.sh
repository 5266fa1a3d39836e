#!/bin/bash
#: name = "a"
#: variety = "basic"
#: [[publish]]
#: from_output = "/a"
#: series = "s"
#: name = "n"
#: version = "1"

echo
# buildomat: unknown key
# penstock: accepted
# Penstock has this key.
