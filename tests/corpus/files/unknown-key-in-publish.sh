#!/bin/bash
#: name = "a"
#: variety = "basic"
#: [[publish]]
#: from_output = "/a"
#: series = "s"
#: name = "n"
#: access_repos = []

echo
# buildomat: unknown key
