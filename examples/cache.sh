#!/bin/bash
#:
#: name = "cache"
#: variety = "basic"
#:
#: [cache.tools]
#: paths = ["tools"]
#: key = "tools-1"
#:

set -o errexit
cd "$PENSTOCK_WORK"
if [ ! -e tools/greet ]; then
    echo "making the tools: the next job finds them"
    mkdir -p tools
    printf '#!/bin/sh\necho "hello, $1"\n' > tools/greet
    chmod +x tools/greet
fi
tools/greet world

echo "lock 1" > deps.lock
key=$(sha256sum < deps.lock | cut -c 1-16)
if ! bmat cache restore deps deps --key "deps-$key" --restore-key deps-; then
    mkdir -p deps
    cp deps.lock deps/built-from
fi
cat deps/built-from
bmat cache save deps deps --key "deps-$key"
