"""A made-up cloud, for authors of drivers: it fails in every way that real clouds fail, by seed.

    offers     the ways to get a machine, and the names of their shortages
    faults     the knobs: how calls fail, and what machines suffer from; all are off until they are turned
    machines   what one machine is, and what it can do at a time
    cloud      what exists, whoever asks; time and dice are passed in
    keys       what is wrong with a site's settings
    driver     the driver of a factory or a well: it keeps nothing, as any driver

It is in no list of drivers that a site may choose from. `tests/contracts` holds it to what every driver promises, and
`simulation` runs on it: docs/internals/chaos.md.
"""

from penstock.testing.fake.cloud import Cloud
from penstock.testing.fake.driver import FakeDriver
from penstock.testing.fake.faults import ERRORS, Ailment, Birth, Faults
from penstock.testing.fake.machines import Machine
from penstock.testing.fake.offers import Offer

__all__ = ["ERRORS", "Ailment", "Birth", "Cloud", "FakeDriver", "Faults", "Machine", "Offer"]
