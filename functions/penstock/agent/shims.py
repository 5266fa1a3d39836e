"""Small commands that scripts written for buildomat expect on the PATH. Those that the machine has are left alone."""

from __future__ import annotations

import os
import shutil

BASE_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/ooce/bin:/opt/ooce/sbin"

PFEXEC = """#!/bin/sh
# pfexec COMMAND...: as root
if [ "$(id -u)" = 0 ]; then exec "$@"; fi
exec sudo -n -- "$@"
"""

PTIME = """#!/bin/bash
# ptime [-m] COMMAND...: and how long it took
while [[ "$1" == -[mF] ]]; do shift; done
time "$@"
"""

BANNER = """#!/bin/sh
# banner WORD...: a heading
for word; do
  line=$(printf '%s' "## $word ##" | sed 's/./#/g')
  printf '\\n%s\\n## %s ##\\n%s\\n\\n' "$line" "$word" "$line"
done
"""

SHIMS = {"pfexec": PFEXEC, "ptime": PTIME, "banner": BANNER}


def install(folder: str) -> None:
    """Put each into a folder, unless the machine has that command elsewhere. Raises OSError."""
    elsewhere = os.pathsep.join(each for each in BASE_PATH.split(os.pathsep) if each != folder)
    for name, text in SHIMS.items():
        if not shutil.which(name, path=elsewhere):
            put(os.path.join(folder, name), text)


def put(path: str, text: str) -> None:
    """Write a command, whole or not at all. Raises OSError."""
    draft = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.new")
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(draft, 0o755)
    os.replace(draft, path)
