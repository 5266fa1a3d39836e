#!/bin/bash
#: name = "a"
#: variety = "basic"
#: publish = [{ from_output = "out/a", series = "s", name = "a" }]

echo
# buildomat: accepted
# The path matches no output.
