#!/bin/bash
# This file is under the terms of the MPL.
# It may be copied.
#:
#: name = "licensed"	# a TOML comment
#: variety = "basic"
# a comment between lines of TOML
#: target = "ubuntu-22.04"
#:
# TODO: more rules
#: output_rules = [ "/work/a", # why
# not TOML at all: [ ] = "
#:   "/work/b" ]
echo done
