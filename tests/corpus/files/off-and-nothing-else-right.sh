#!/bin/bash
#: name = "a"
#: variety = "basic"
#: enable = false
#: target = 3
#: taget = "x"
#: disabled = true
#: [dependencies.b]
#: job = "a"

echo
# buildomat: accepted
# A job that is off is not looked at further.
# values: {"name": "a", "variety": "basic", "enable": false, "dependencies": {"b": "a"}}
