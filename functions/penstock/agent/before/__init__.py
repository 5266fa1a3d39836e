"""Tasks before the job's script: what buildomat's jobs find done when theirs begins (docs/internals/agent.md).

setup           the user that the job's tasks run as
authentication  where git and curl find the job's token
clone           the repository, at the commit
toolchain       Rust, by rustup

Each is a program of its own, `agent.pyz before NAME`, which a task runs like any script: so it is read, bounded,
cancelled and ended like one. Of the rest of the agent they import its clock alone; its `plan` says which there are.
"""
