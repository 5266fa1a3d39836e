#!/bin/bash
#:
#: name = "report"
#: variety = "basic"
#:
#: [dependencies.sign]
#: job = "sign"
#: on = "always"
#: copy_outputs = false
#:
# Runs last, whatever the others came to.

echo "all is over"
