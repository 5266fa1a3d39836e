#!/bin/bash
#:#: name = "a"
#:#:#:variety = "basic"

echo
# buildomat: accepted
# values: {"name": "a", "variety": "basic", "enable": true, "dependencies": {}, "target": "default", "output_rules": [], "rust_toolchain": null, "access_repos": [], "publish": [], "skip_clone": false}
