"""The `postgres` well: a temporary database and role for each lease, on an existing PostgreSQL server.

    settings     a site's settings, a job's options, and the checks of both
    passwords    the admin's password, and the password of each lease
    names        names and comments of databases and roles, by which they are found again
    session      connections to the server, with limits on their time
    errors       what the server's errors mean
    databases    finding, creating and removing the database and role of a unit
    well         the driver

See docs/operators/wells/postgres.md.
"""
