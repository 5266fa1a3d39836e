"""The routes of users and operators, noun by noun. Those of agents are in `workers`."""

from penstock.api import (
    account,
    alarms,
    artifacts,
    attention,
    caches,
    costs,
    document,
    files,
    github,
    identity,
    jobs,
    leases,
    logins,
    logs,
    pools,
    privileges,
    probes,
    provenance,
    published,
    reviews,
    series,
    session,
    sets,
    shares,
    site,
    stops,
    store,
    tokens,
    units,
    users,
    waiting,
)

ROUTERS = tuple(
    noun.router
    for noun in (
        jobs, leases, sets, costs, logs, files, store, waiting, reviews, provenance, published, artifacts, caches,
        pools, series, shares, units, attention, account, alarms, site, stops, probes, users, privileges, tokens,
        logins, session, github, identity, document,
    )
)  # fmt: skip
