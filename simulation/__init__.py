"""Runs the use cases in a world that one seed determines. Only the code under test is real.

scenario            the site and the jobs of a seed
faults              how likely each kind of fault is
tasks               handlers as coroutines: one moves at a time, and any two may interleave at any port call
ports               the ports in memory: a call may switch handlers, fail, lose its message, or end its handler
cloud               what factories and wells have made, on the fake cloud that ships with the package
interfaces          what agents, users and checks may use of a run
agents              agents on machines: late, silent, doubled, missing, or acting after their time
hosts               machines that exist already, their agents, and the workers on them
controllers         who switches hosts on and off, and cleans them
stale_tokens        agents that show keys and tokens that have expired
users               users
operators           operators who hold, release, drain and recycle units
handlers            connects the ports to the use cases and calls the handlers
engine              chooses the next step, and brings every run to a calm end
commits             what a check gets: one commit, and the facts from before it
invariants          what must hold after every commit
clean_invariants    the same, for slots and units that must be clean
host_invariants     the same, for hosts
share_invariants    the same, for hosts that jobs share
packings            which of these have room for whom
prewarm_invariants  the same, for units made ahead of need
checks              runs the invariants, and checks the outside world, quiet moments and the end
trace               what happened: a hash to compare runs, and lines to read
errors              how a check reports a broken promise
runner              runs seeds, some twice, and shrinks those that fail
arguments           arguments that both command lines share
chaos               the same world with given numbers and hundreds of jobs
"""
