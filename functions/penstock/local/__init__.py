"""The local cloud: an AWS emulator as a child process, with the same synthesised stack deployed to it.

`cloud` brings it up and down; `host` is the child; `run` is what `make run` does.
"""
