#!/bin/bash
#: name = "a"
#: variety = "basic"
#: rust_toolchain = false

echo
# buildomat: accepted
