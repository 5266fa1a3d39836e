"""What the previous release has stored and sent, and what the present one may change of it in one step."""
