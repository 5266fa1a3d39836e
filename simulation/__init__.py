"""Penstock's use cases in a world that is drawn from one seed: nothing is real but the code under test.

weather     how likely each kind of trouble is
plan        the site, the jobs and the people's doings of a seed
baton       handlers as threads of which one moves at a time, so that any two interleave at any port call
ports       the ports in memory: every call may pass the baton, fail, be lost, or be the last that its handler makes
outside     what factories and wells have made: the fake cloud that ships with the package
agents      what runs on the machines: late, silent, twice, never, and after its time
rogues      agents that show what is worth nothing any more
people      users and operators
handlers    calls the handlers, and gives the ports what they ask for
engine      picks what happens next, step by step, and lets it end well
moments     what a check is given: one commit, and what was true before it
invariants  what must hold after every commit
cleanliness the same, for what is clean
promises    asks them, and what must hold outside, when all is quiet, and at the end
story       what happened, for the hash and for the reader
runs        seeds, one after another: twice each, shrunk when they fail
chaos       the same with given figures, and hundreds of jobs at once
"""
