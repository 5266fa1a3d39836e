#!/bin/bash
#: variety = "basic"
#: [dependencies.b]
#: job = "b"
#: name = "a"

echo
# buildomat: no name
