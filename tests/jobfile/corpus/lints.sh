#!/bin/bash
#:
#: name = "lints"
#: variety = "basic"
#: target = "ubuntu-24.04"
#: rust_toolchain = true
#: output_rules = []
#:

set -o errexit
set -o pipefail
set -o xtrace

banner clippy
ptime -m cargo clippy --workspace --all-targets -- --deny warnings
