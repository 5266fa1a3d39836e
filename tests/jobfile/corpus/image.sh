#!/bin/bash
#:
#: name = "image"
#: variety = "basic"
#: target = "helios-3.0"
#: rust_toolchain = "1.85"
#: output_rules = [
#:   "=/work/image.tar.gz",
#:   "=/work/image.sha256.txt",
#: ]
#:
#: [[publish]]
#: series = "image"
#: name = "image.tar.gz"
#: from_output = "/work/image.tar.gz"
#:
#: [[publish]]
#: series = "image"
#: name = "image.sha256.txt"
#: from_output = "/work/image.sha256.txt"
#:

set -o errexit
tar czf /work/image.tar.gz -C out .
digest -a sha256 /work/image.tar.gz > /work/image.sha256.txt
