"""The agent: the one program of Penstock that runs on a worker. Standard library only, Python 3.9+.

It imports nothing of penstock: `penstock.agentfile` packs this folder, and nothing else, into the one file that
machines fetch. docs/internals/agent.md describes its whole life; start reading at `worker`.

Every job enters these:

__main__      the command line
worker        a worker's life: from hello, through its jobs, to the exit code
machine       the agent's own files, log and clock; the folders, user, PATH and processes of the job
client        calls to the service, and the lease, which decides whether the work goes on
job           the job: what the service says of it, its background processes, and its outcome
masking       hides secrets in all that leaves the machine
joblog        the job's log: what processes print, as lines on their way to the service
tasks         the job's scripts, one after the other, and the answers to their calls of bmat

Only jobs that need them enter these:

inputs        files that are fetched before the script
outputs       files that are uploaded after it
caches        files that later jobs find again; archive packs them
downloads     files from storage, and the copies that jobs of one owner share
uploads       files to storage
health        whether the machine is fit for jobs, and how it is cleaned
diagnosis     why a task failed
prepare       the programs that prepare the machine before the job's script

These are commands of their own:

bmat          the command with which a job's script asks the agent; it imports nothing else of the agent
host          the agent of a machine that exists already, which starts a worker per job (docs/operators/hosts.md)
hostclient    what it says to the service, and with which token
hostloop      its loop: what to do with its worker, how far it is, and what of that survives a restart
hostprocess   a worker that is a process of the machine, if this runs one job at a time
hostuser      whether jobs can reach the agent
packed        compiles the file for a host's workers, which start from a copy of it

hostparts     the parts of a host that several jobs share: a loop for each
containers    a worker that is a container
engine        the container engine, through its command
relay         how containers reach a service on the loopback of their host
"""

VERSION = "unpacked"  # `penstock.agentfile` replaces it by the start of a digest of these modules
