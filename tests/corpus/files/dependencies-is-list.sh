#!/bin/bash
#: name = "a"
#: variety = "basic"
#: dependencies = ["b"]

echo
# buildomat: wrong type of dependencies
