#!/bin/bash
#:
#: name = "resources"
#: variety = "basic"
#: resources = ["licence", "bench"]
#: timeout = "5m"
#:
# Asks for two scarce things and says which ones it got. They are this job's alone until it settles.

set -o errexit
set -o nounset
set -o pipefail

bmat resource list
echo "the bench is $(bmat resource get bench name)"
echo "the licence is $(bmat resource get licence name)"
