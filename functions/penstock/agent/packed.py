"""The agent's own file, with its modules compiled for the Python that runs: its next start compiles none of them.

Python never stores what it compiles of a zip. So a host's agent keeps such a file in memory, and gives each worker a
new copy: a job could change a file that stays, and with it the agent of the next job. [SEC-2]
"""

from __future__ import annotations

import importlib.util
import io
import marshal
import zipfile

UNCHECKED = b"\1" + bytes(11)  # PEP 552: the module counts, whatever its source is
SOURCE, COMPILED = ".py", ".pyc"


def compile_file(packed: bytes) -> bytes:
    """Return the file with a compiled module beside each source. Another version of Python uses the sources."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(packed)) as file, zipfile.ZipFile(buffer, "w") as made:
        for entry in file.infolist():
            if not entry.filename.endswith(COMPILED):
                source = file.read(entry)
                made.writestr(entry, source)
                made.writestr(_beside(entry), _compiled(source, entry.filename))
    return packed[: packed.index(b"PK")] + buffer.getvalue()


def _beside(source: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """The compiled module's entry. It has the date of its source, so that the same file always gives the same bytes."""
    entry = zipfile.ZipInfo(source.filename[: -len(SOURCE)] + COMPILED, source.date_time)
    entry.create_system, entry.external_attr = source.create_system, source.external_attr
    return entry


def _compiled(source: bytes, name: str) -> bytes:
    code = compile(source, f"agent.pyz/{name}", "exec", dont_inherit=True)
    return importlib.util.MAGIC_NUMBER + UNCHECKED + marshal.dumps(code)
