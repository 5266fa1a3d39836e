#!/bin/bash
#: name = "a"
#: variety = "basic"
#: [dependencies.b]

echo
# buildomat: no job in dependencies
