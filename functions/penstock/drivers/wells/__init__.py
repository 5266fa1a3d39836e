"""Drivers that make resources."""
