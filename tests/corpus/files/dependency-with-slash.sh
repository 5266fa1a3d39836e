#!/bin/bash
#: name = "a"
#: variety = "basic"
#: dependencies."b/c".job = "b"

echo
# buildomat: accepted
# penstock: no `/` in a dependency's name
# buildomat refuses it when it submits the job.
