"""A throw-away database and role on a PostgreSQL server: docs/operators/wells/postgres.md.

keys         what is wrong with a site's settings, and with a job's options
settings     what they say
credentials  where the admin's password is
names        what a unit's database and role are called, and how they are known again
secrets      the password of a lease, and what the server may know of it
session      connections that never hang
codes        what the server's errors mean
looking      what there is of a unit
making       from nothing to a database that a job may use
ending       from whatever there is to nothing
well         the driver
"""
