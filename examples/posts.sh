#!/bin/bash
#: name = "posts"
#: variety = "basic"
#: target = "default"
#: output_rules = ["%/work/state.txt"]
#:
#: [[post]]
#: name = "state"
#: on = "failure"
#: script = "date > /work/state.txt"
#:
#: [[post]]
#: name = "goodbye"
#: on = "always"
#: script = "echo goodbye"

echo hello
