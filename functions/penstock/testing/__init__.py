"""Penstock in one process, for tests: its own, and those of whoever writes a driver. See docs/drivers/testing.md.

    store       MemoryStore: rows in a dict that is kept in order; tests/contracts hold it to the suite of the real one
    metrics     RecordedMetrics: what was counted, and whether it may be sent
    twin        Twin: the real use cases over ports in memory, on a clock that a test moves
    site        builds site files from keyword arguments
    contract    the suite that every driver passes, and `penstock driver test` runs
    fake        a made-up cloud that fails as real clouds do, and its driver

Nothing here runs in the cloud: it is left out of the functions' zip. Install `penstock[testing]` to use it.
"""
