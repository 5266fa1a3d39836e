"""Where Penstock runs and what it may touch: `stack.py` is the parts list, `grants.py` the permissions."""
