#!/bin/bash
#: name = "a"
#: variety = "basic"
#: [dependencies.b]
#: job = "b"
#: on = "always"
#: copy_outputs = false

echo
# buildomat: accepted
# buildomat ignores both keys, and Penstock uses them.
