#!/bin/bash
#: name = "a"
#: variety = "basic"
#: name = "b"

echo
# buildomat: not TOML
