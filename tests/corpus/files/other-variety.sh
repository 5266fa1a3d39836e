#!/bin/bash
#: name = "a"
#: variety = "Basic"

echo
# buildomat: wrong variety
