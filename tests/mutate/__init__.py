"""Mutation of every named condition and effect: each is dropped, weakened or moved, and some test must notice.

scope     which functions have named conditions
sites     the conditions of a module, and the mutants of each
effects   the effects of a module, and the mutants of each
called    what a call calls, and whether it asks the store
kinds     conditions and effects, and where the record of each is
trees     changes of a module's tree
plant     puts a mutant into the running process
watch     which tests evaluate which condition, and with which value, and which come to which effect
hunt      runs tests against mutants, each in a forked child
memory    what the last run learned of the tests
record    which tests notice the mutants of which function, as it is kept in tests/mutants.txt
carried   carries the record over a renaming
owe       writes the list of the mutants that no test notices yet

What a named condition is, and why this is a tool of our own: docs/decisions/0013-mutation-tested-conditions.md.
"""
