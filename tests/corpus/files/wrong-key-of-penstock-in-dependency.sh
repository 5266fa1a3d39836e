#!/bin/bash
#: name = "a"
#: variety = "basic"
#: [dependencies.b]
#: job = "b"
#: on = "never"

echo
# buildomat: accepted
# penstock: `dependencies.b.on` cannot be `never`
