"""The log of a job, as rows and as an archive."""
