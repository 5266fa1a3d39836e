"""Load, decide, commit. Everything here may be done twice, late, or by two at once."""
