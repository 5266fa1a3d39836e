"""The agent: the one program of Penstock that runs on a worker. Standard library only, Python 3.9+.

It imports nothing of penstock: `penstock.agentfile` packs this folder, and nothing else, into the one file that
machines fetch. docs/internals/agent.md tells its life as a whole; `life` is where to start reading.

life        from hello to the exit code             tasks, run, launch    the job's scripts, one after the other
config      who this agent is                       pump, lines           what a script says, as events
order       what it is told to do                   outbox, delivery      events on their way to the service
control     what stops the work, and when           family, ending        the job's processes, and their end
service     calls to the service                    selection, uploads    outputs
plan        the tasks before the job's script       before                what each of them does, as a program
desk        answers `bmat` on this side             bmat                  the job's side, which imports none of the rest

A machine that exists already has an agent of its own, which starts this one for each job (docs/operators/hosts.md):

hosting     its command line                        standing    what it is at, in files
host        its loop: ask, do, say                  crew        the worker's agent, a process of its own
office      calls to the service
"""

VERSION = "0.1.0"
