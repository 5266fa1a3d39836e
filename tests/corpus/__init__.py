"""The job files that there are, read by rules that were written down apart, and by ours: both must say the same.

The files are other people's and not kept here; what is kept is a table of their digests and verdicts (table.tsv).
`files/` has files of our own, each of which states its verdict.
docs/internals/corpus.md says how to look again.
"""
