#!/bin/bash
#: name = a b
#: variety = "basic"

echo
# buildomat: not TOML
