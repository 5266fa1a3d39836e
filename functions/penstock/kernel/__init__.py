"""The ground that everything may import: rows and their keys, ids, errors, limits."""
