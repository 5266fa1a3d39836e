"""A site that wants privileges."""

from __future__ import annotations

from tests.usecases.conftest import SITE

LOCKED = SITE.replace('names = ["bench-1"]', 'names = ["bench-1"]\nprivilege = "resource.bench"') + (
    '[targets.alias]\nredirect = "linux"\nprivilege = "target.alias"\n'
    '[wells.spring]\ndriver = "hand"\n'
    '[resources.db]\nwell = "spring"\nlimit = 1\nprivilege = "resource.db"\nwarm = { max = 1 }\n'
)
