#!/bin/bash
#:
#: name = "build-and-test / illumos"
#: variety = "basic"
#: target = "helios-2.0"
#: rust_toolchain = "stable"
#: output_rules = [
#:	"=/work/bins/*.gz",
#:	"%/work/logs/**/*.log",
#:	"!/work/logs/noise.log",
#: ]
#: access_repos = [
#:	"acme/wire-format",
#: ]
#:

set -e
banner test
cargo test --workspace
