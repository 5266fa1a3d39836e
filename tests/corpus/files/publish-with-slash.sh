#!/bin/bash
#: name = "a"
#: variety = "basic"
#: publish = [{ from_output = "/a", series = "s/t", name = "n" }]

echo
# buildomat: accepted
# penstock: `publish.series`: `s/t` is not a part of a published name
# buildomat fails when it publishes.
