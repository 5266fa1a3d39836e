"""Figures that are counted, not promised: `python -m tests.figures` prints them and fails over a budget.

counting    the twin with a store, queues and flows that count
grants      what a claim, a release and a grant read and write, by the length of the queue and the size of the pool
servers     what a grant costs when many serve one pool at once, on the emulator
decisions   how many decisions the domain makes in a second
scale       jobs by the hundred thousand through the whole use cases
report      tables and budgets
__main__    all of it, as `make bench` prints it
"""
