"""The routes of users and operators, noun by noun. Those of agents are in `workers`."""

from penstock.api import (
    artifacts,
    caches,
    document,
    files,
    github,
    identity,
    jobs,
    logs,
    plans,
    pools,
    probes,
    published,
    site,
    units,
    users,
    values,
)

ROUTERS = tuple(
    noun.router
    for noun in (
        jobs, logs, files, values, plans, published, artifacts, caches, pools, units, site, probes, users, github,
        identity, document,
    )
)  # fmt: skip
