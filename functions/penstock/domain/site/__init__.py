"""The site's configuration: its values, and how its TOML text is read and checked."""
