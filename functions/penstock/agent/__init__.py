"""The agent: the one program of Penstock that runs on a worker. Standard library only, Python 3.9+.

It imports nothing of penstock: `penstock.agentfile` packs this folder, and nothing else, into the one file that
machines fetch. docs/internals/agent.md describes its whole life; start reading at `worker`.

worker        a worker's life: from hello, through its jobs, to the exit code
host          the agent of a machine that exists already, which starts a worker per job (docs/operators/hosts.md)
cli           the command lines of both
bmat          the command with which a job's script asks the agent; it imports nothing else of the agent
prepare       the programs that prepare the machine before the job's script

job           the job: what the service says of it, and its outcome
tasks         the job's scripts, one after the other
inputs        files that are fetched before the script
outputs       files that are uploaded after it
caches        files that later jobs find again; archive packs them
bmat_server   answers bmat
health        whether the machine is fit for jobs, and clean
diagnosis     why a task failed

config        the agent's own files
control       whether the work goes on: cancellation, lease, timeout
client        HTTP calls to the service
downloads     files from storage
uploads       files to storage
streams       what a process writes, as lines
masking       hides secrets in it
events        the lines on their way to the service
processes     the job's processes, and how they end
machine       folders, user, PATH
log           the agent's own log
"""

VERSION = "0.1.0"
