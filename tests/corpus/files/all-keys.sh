#!/bin/bash
# The licence
#: name = "image / build (x86)"
#
#: variety = "basic"
#: enable = true
#: target = "lab-2.0"
#: rust_toolchain = "1.85"
#: skip_clone = true
#: access_repos = ["acme/keys"]
#: output_rules = ["=/work/a.tar", "%/work/*.log", "=%/b", "%=/c", "!/work/tmp/**", "/d"]
# A comment between two tables
#: [[publish]]
#: from_output = "/work/a.tar"
#: series = "image"
#: name = "a.tar"
#: [dependencies.os]
#: job = "os image"
#: [dependencies."a b"]
#: job = "b"

echo
# buildomat: accepted
# values: {"name": "image / build (x86)", "variety": "basic", "enable": true, "dependencies": {"os": "os image", "a b": "b"}, "target": "lab-2.0", "output_rules": [["/work/a.tar", false, true, false], ["/work/*.log", false, false, true], ["/b", false, true, true], ["/c", false, true, true], ["/work/tmp/**", true, false, false], ["/d", false, false, false]], "rust_toolchain": "1.85", "access_repos": ["acme/keys"], "publish": [["/work/a.tar", "image", "a.tar"]], "skip_clone": true}
