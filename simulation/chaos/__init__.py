"""The chaos test: hundreds of jobs on an account of bad machines, on a virtual clock, by seed. docs/internals/chaos.md.

It runs the simulation and its invariants, with a site, jobs and faults of given numbers instead of random ones: those
of Arvados' `TestDispatchToStubDriver`, or harder ones.

scenario        what to run: the site and the jobs
machine_faults  what goes wrong with machines and calls
interfaces      what agents, incidents and checks may use of a run
agents          agents on bad machines
ports           the ports: messages take a moment, calls of the cloud take longer
incidents       what happens by the clock: restarts, partitions, spot interruptions, clock jumps, operators
checks          the additional invariants, and what happened and what it cost
engine          one run
figures         the figures of one run, and of many
runner          runs seeds one after another
"""
