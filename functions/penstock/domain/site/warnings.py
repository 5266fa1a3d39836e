"""What a site allows and its operators may not mean: who could be harmed by whom, and what prevents it. [SEC-2]"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.domain.pools.pools import Serves
from penstock.domain.site.site import Site


def warnings(site: Site) -> Iterator[str]:
    """Targets whose machines serve one owner after another, and whose jobs may become root there, a sentence each."""
    for target in site.targets.values():
        if not target.sudo:
            continue
        if target.warm and target.warm.serves is Serves.SITE:
            yield (
                f"target {target.name}: `serves` hands its workers from one owner to another, and a job can leave "
                "there what harms the next one; without `serves` each worker has one owner, and with `sudo = false` "
                "jobs cannot become root"
            )
        if target.names is not None and target.privilege is None:
            yield (
                f"target {target.name}: its hosts serve the jobs of everybody, and a job that runs as the agent's user "
                "can leave there what harms the next one; start their agents with `--user` and set `sudo = false`, "
                "for which a host without `--user` is broken, or give it a `privilege` that only owners have who trust "
                "each other"
            )
