"""Jobs: what users submit, what a job waits for, and how it ends."""
