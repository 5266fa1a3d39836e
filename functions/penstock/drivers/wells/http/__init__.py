"""The `http` well: a service of the site creates, cleans, destroys and lists resources over HTTP.

    settings    a site's settings, the schema of a job's options, and the checks of both
    well        the driver

What it has in common with the `http` factory is in `penstock.drivers.http`. See docs/operators/wells/http.md.
"""
