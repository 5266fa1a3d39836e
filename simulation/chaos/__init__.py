"""The chaos test: one account of bad machines, hundreds of jobs, on a virtual clock, by seed. docs/internals/chaos.md.

It is the simulation with its invariants, over a site, jobs and faults of given figures instead of drawn ones: those of
Arvados' `TestDispatchToStubDriver`, or harder ones.

plan        the site and the jobs
ailments    what machines suffer from, and what calls
machines    agents on such machines
world       the ports: messages take a moment, calls of the cloud longer
troubles    what comes from nowhere, by the clock: restarts, partitions, storms, leaps, operators
watch       what must hold besides, what really happened, and what it cost
engine      one run
figures     the figures of a run, and of many
runs        seeds, one after another
"""
