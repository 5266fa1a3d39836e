"""What the site of every scenario says."""

SITE = """
[factories.hand]
driver = "hand"
[targets.linux]
factory = "hand"
limit = 2
[targets.default]
redirect = "linux"
[targets.big]
factory = "hand"
limit = 2
uses = { vcpus = 2 }
[quotas.vcpus]
amount = 3
[wells.hand]
driver = "hand"
[resources.bench]
well = "hand"
names = ["bench-1"]
[resources.licence]
well = "hand"
limit = 2
[targets.kept]
factory = "hand"
limit = 2
uses = { vcpus = 2 }
warm = { max = 1, idle = "2m" }
[resources.sandbox]
well = "hand"
limit = 1
warm = { max = 1 }
"""

AHEAD = SITE.replace('max = 1, idle = "2m"', 'min = 1, max = 2, idle = "1h"').replace("{ max = 1 }", "{ min = 1 }")
"""The same, where a worker and a resource are made ahead of need."""

LABELLED = (
    SITE
    + """
[resources.rig]
well = "hand"
leases = 2
[resources.rig.things.rig-1]
labels = { rack = "1" }
[resources.rig.things.rig-2]
labels = { rack = "2" }
"""
)
"""The same, with things among which jobs choose."""

BRIEF = SITE + "[retention]\nsucceeded = 60\n"
"""The same, where nobody keeps for long what a job made."""

ARCHIVED = SITE + "[retention]\nlog = 60\n"
"""The same, where a job's log is soon an object."""

CANARY = (
    SITE
    + """
[resources.bench.canary]
every = "1d"
script = "true"
target = "linux"
"""
)
"""The same, where a job is sent to see whether the bench works."""

REVIEWED = (
    SITE.replace('names = ["bench-1"]', 'names = ["bench-1"]\nprivilege = "resource.bench"')
    + """
[environments.production]
owners = ["cy"]
privileges = ["resource.bench"]
reviewers = ["bert"]
"""
)
"""The same, where somebody approves who gets the bench."""

IMPATIENT = SITE + "[limits]\nboot = 60\nidle_hold = 120\n"
"""The same, where nobody holds for long what they cannot use."""

FEW = SITE + "[limits]\nat_once = 1\n"
"""The same, where one job of each owner is under way at once."""

PRIVATE = SITE.replace('names = ["bench-1"]', 'names = ["bench-1"]\nprivilege = "resource.bench"')
"""The same, where the bench is not for everybody."""

FRONT = SITE + '[github]\napp = 4711\napi = "https://github.test"\nrepositories = ["oxide/*"]\n'
"""The same, which takes jobs from GitHub."""

COLD = "\n".join(line for line in SITE.splitlines() if not line.startswith("warm"))
"""The same, where nothing is kept for the next lease."""
