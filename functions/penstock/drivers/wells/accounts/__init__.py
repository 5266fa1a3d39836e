"""The `accounts` well: things that exist already, which a function or command of the site cleans between leases.

    settings    a site's settings, and their checks
    cleaner     calls of the site's function or command, and its answers
    well        the driver

See docs/operators/wells/accounts.md.
"""
