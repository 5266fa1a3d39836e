#!/bin/bash
#: variety = "basic"

echo
# buildomat: no name
