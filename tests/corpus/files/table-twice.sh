#!/bin/bash
#: name = "a"
#: variety = "basic"
#: [dependencies.b]
#: job = "b"
#: [dependencies.b]
#: job = "c"

echo
# buildomat: not TOML
