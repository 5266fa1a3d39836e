#!/bin/bash
#: name = "a"
#: variety = "basic"
#: [dependencies.b]
#: job = "b"
#: target = "lab"
#: access_repos = []

echo
# buildomat: accepted
# values: {"name": "a", "variety": "basic", "enable": true, "dependencies": {"b": "b"}, "target": "default", "output_rules": [], "rust_toolchain": null, "access_repos": [], "publish": [], "skip_clone": false}
