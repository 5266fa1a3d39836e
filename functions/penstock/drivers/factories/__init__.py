"""Drivers that make workers."""
