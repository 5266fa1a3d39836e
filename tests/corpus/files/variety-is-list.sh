#!/bin/bash
#: name = "a"
#: variety = ["basic"]

echo
# buildomat: wrong type of variety
