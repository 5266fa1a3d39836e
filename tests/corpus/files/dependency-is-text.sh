#!/bin/bash
#: name = "a"
#: variety = "basic"
#: dependencies.b = "b"

echo
# buildomat: wrong type of dependencies
