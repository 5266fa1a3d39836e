"""Users and their privileges, identity tokens, and the audit log."""
