"""The `http` factory: a program of the site makes, lists and destroys workers over HTTP. See docs/operators/http.md.

    settings    a site's settings, and their checks
    launch      what the program is sent to make one worker
    factory     the driver

What it has in common with the `http` well is in `penstock.drivers.http`.
"""
