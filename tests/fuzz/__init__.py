"""What strangers send, at random: the API from its own document, and the readers with a fuzzer that sees branches.

docs/internals/fuzzing.md tells what is tried, and how a finding is replayed.
"""
