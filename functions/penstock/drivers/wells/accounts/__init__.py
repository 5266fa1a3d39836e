"""The `accounts` well: things that exist already, cleaned between two leases by the site's own means.

    settings    what a site may say, and what is wrong with it
    cleaner     the site's function or command: how it is asked, and what it may answer
    drift       what differs between two looks at a thing
    well        the driver

docs/operators/wells/accounts.md tells it.
"""
