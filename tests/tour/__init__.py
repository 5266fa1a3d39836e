"""One job with one resource, from its submission until its worker is gone: which modules and functions it enters.

    trace       notes each function of Penstock that is entered for the first time, in this process and in the agent's
    site        the twin behind the functions' real handlers, and an HTTP server for the agent
    __main__    runs the job and prints what it entered: `make tour`

The functions are warm: they have the parsed site and the agent's packed file in memory, as on AWS after their first
call. What modules call while they are imported does not count either.

docs/internals/tour.md follows it, and test_tour keeps both true.
"""
