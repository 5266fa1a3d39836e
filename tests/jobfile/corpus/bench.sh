#!/bin/bash
#: name = "performance (nightly)"
#: variety = "basic"
#: target = "ubuntu-24.04"
#: resources = ["bench", "licence"]
#: timeout = "1h30m"
#: priority = -10
#: retries = 2
#: on_failure = "retry"
#: output_rules = ["%=/work/flame.svg", "=%/work/*.json"]
#: env = { RUST_LOG = "info", EMPTY = "" }
#: tags.suite = "nightly"
#: tags."git.branch" = "main"

cargo bench
