#!/bin/bash
#: name = "a"
#: variety = "basic"
#: enable = false
#: [dependencies.b]

echo
# buildomat: no job in dependencies
