"""Mutation of every named condition: each is dropped and weakened, and some test must notice.

scope     which functions have named conditions
sites     the conditions of a module, and the mutants of each
plant     puts a mutant into the running process
watch     which tests evaluate which condition, and with which value
hunt      runs tests against mutants, each in a forked child
memory    what the last run learned of the tests
renamed   carries the record over a renaming
record    which tests notice the mutants of which function, as it is kept in tests/mutants.txt

What a named condition is, and why this is a tool of our own: docs/decisions/0013-mutation-tested-conditions.md.
"""
