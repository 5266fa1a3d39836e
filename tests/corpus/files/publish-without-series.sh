#!/bin/bash
#: name = "a"
#: variety = "basic"
#: [[publish]]
#: from_output = "/a"
#: name = "n"

echo
# buildomat: no series in publish
