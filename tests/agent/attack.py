"""What a job tries to reach its agent. It says of each try whether it `did` it or `not`."""

from tests.agent.control_plane import ControlPlane

ATTACK = r"""
SEIZE=16902  # PTRACE_ATTACH would stop the agent, and leave it so if its tracer ends at once
for each in /proc/[0-9]*; do
  tr '\0' ' ' < $each/cmdline 2>/dev/null | grep -q 'agent.pyz run' && agent=${each#/proc/}
done
[ -n "$agent" ] || { echo "the agent is not found"; exit 1; }
tried() { local name=$1; shift; if $AS "$@" > /dev/null 2>&1; then echo "did: $name"; else echo "not: $name"; fi; }
tried "read the config" cat /opt/penstock/agent.json
tried "read the token" cat /opt/penstock/token
tried "list the agent's folder" ls /opt/penstock
tried "read its environment" cat /proc/$agent/environ
tried "read its memory" python3 -c "open('/proc/$agent/mem', 'rb')"
tried "list its files" ls /proc/$agent/fd/
tried "signal it" /bin/kill -CONT $agent
tried "trace it" python3 -c "
import ctypes, sys
sys.exit(ctypes.CDLL(None).ptrace($SEIZE, $agent, None, None) != 0)"
tried "write its program" sh -c ': >> /opt/penstock/agent.pyz'
tried "write the program of its tasks" sh -c ': >> /usr/local/lib/penstock/job.pyz'
tried "write bmat" sh -c ': >> /usr/local/bin/bmat'
tried "reach another job's socket" python3 -c "
import socket, sys
try:
    socket.socket(socket.AF_UNIX).connect('/tmp/bmat-other/socket')
except ConnectionRefusedError:
    sys.exit(0)"
tried "become root" sh -c '[ "$(sudo -n id -u)" = 0 ]'
"""
OTHERS = r"""mkdir -m 700 $ROOT/tmp/bmat-other
python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('$ROOT/tmp/bmat-other/socket')"
chown -R 23456 $ROOT/tmp/bmat-other
"""
TRIES = 13


def tries(plane: ControlPlane, word: str) -> list[str]:
    """Return what an attack did, or did not do."""
    return [line.partition(": ")[2] for line in plane.lines("stdout") if line.startswith(f"{word}: ")]
