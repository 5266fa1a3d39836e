"""Penstock in one process: the real use cases over ports kept in memory, on a clock that only moves when told to.

The store is held to the same suite as the real one (tests/store); the flow walks the same steps as attempt.asl.json.
"""
