"""Use cases: load, decide, commit. Each may be repeated, be late, or run twice at the same time."""
