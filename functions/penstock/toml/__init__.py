"""TOML with places: reading a document, and checking its values so that each fault names its line and column."""
