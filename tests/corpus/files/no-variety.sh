#!/bin/bash
#: name = "a"

echo
# buildomat: no variety
