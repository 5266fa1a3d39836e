#!/bin/bash
#:
#: name = "interop"
#: variety = "basic"
#: target = "lab-3.0-gimlet"
#: enable = false
#: skip_clone = true
#: rust_toolchain = false
#:
exec ./interop
