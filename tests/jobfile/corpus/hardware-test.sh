#!/bin/bash
#:
#: name = "lab / deploy"
#: variety = "basic"
#: target = "lab-3.0-gimlet"
#: skip_clone = true
#: output_rules = [
#:   "%/var/svc/log/*.log",
#:   "%/work/**/*.core",
#:   "=/work/report.txt",
#: ]
#:
#: [dependencies.image]
#: job = "image"
#:
#: [dependencies.tools]
#: job = "build-and-test / illumos"
#:

set -o pipefail
finish() { cp /tmp/*.log /work/; }
trap finish EXIT
tar xzf /input/image/work/image.tar.gz
./run-tests | tee /work/report.txt
