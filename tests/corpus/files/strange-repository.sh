#!/bin/bash
#: name = "a"
#: variety = "basic"
#: access_repos = ["hubris"]

echo
# buildomat: accepted
# penstock: is not a repository
# buildomat wants "owner/name" when it makes the token.
