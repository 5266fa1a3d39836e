"""How it was made sure that what a job held is clean again, for whoever looks at the job. [UNIT-2]"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.domain.pools.pools import Lease
from penstock.domain.units.units import CleanProof, Unit, unit_key
from penstock.kernel.rows import Key
from penstock.listings import rows_at
from penstock.system import System


def proofs_of(on: System, leases: Iterable[Lease]) -> Mapping[Key, CleanProof]:
    """The proofs that were given after some leases, by the leases' keys. A unit has that of its last lease only."""
    of_units = [lease for lease in leases if lease.unit]
    found = rows_at(on, {unit_key(str(lease.unit)) for lease in of_units})
    units = {row.id: row for row in found.values() if isinstance(row, Unit)}
    return {lease.key: proof for lease in of_units if (proof := _proof_after(lease, units.get(str(lease.unit))))}


def _proof_after(lease: Lease, unit: Unit | None) -> CleanProof | None:
    """The proof that a unit has, if the lease is its last one."""
    if unit is None:
        return None
    had = unit.lease
    is_last = (had.job, had.attempt, had.order) == (lease.job, lease.attempt, lease.order)
    return unit.cleaning.proof if is_last else None
