#!/bin/bash
#: name = "sign all"
#: variety = "basic"
#: target = "ubuntu-22.04"
#: rust_toolchain = true
#: output_rules = ["=/work/signed/*.zip"]
#: dependencies.board-a = { job = "build board-a" }
#: dependencies.board-b = { job = "build board-b" }
#: dependencies."board c" = { job = "build board-c" }
#: access_repos = ["acme/keys", 'acme/signer.rs']

for board in /input/*/work/*.zip; do sign "$board"; done
