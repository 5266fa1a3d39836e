#!/bin/bash
#: name = "a"
#: variety = "basic"
#: [dependencies.b]
#: job = "a"

echo
# buildomat: a circle
# buildomat refuses the whole commit.
