#!/bin/bash
#: name = "a"
#: variety = "basic"
#: rust_toolchain = true

echo
# buildomat: accepted
