#!/bin/bash
#: name = "a"
#: variety = "basic"
#: rust_toolchain = ["stable"]

echo
# buildomat: wrong type of rust_toolchain
