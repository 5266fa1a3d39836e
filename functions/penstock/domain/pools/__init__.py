"""Pools: slots, queues, leases, and the rules by which claims are granted."""
