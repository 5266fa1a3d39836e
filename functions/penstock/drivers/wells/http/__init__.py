"""The `http` well: a service of the site creates, cleans, destroys and lists resources over HTTP.

    protocol    headers, states and limits of the protocol, and its signatures
    settings    a site's settings, the schema of a job's options, and the checks of both
    transport   one HTTP request with limits on time and size
    client      signed requests to the service, and its signed answers
    errors      what the service's errors mean
    well        the driver
    serving     a server side for services in Python. No function imports it
    openapi     writes the OpenAPI document for services. No function imports it

See docs/operators/wells/http.md.
"""
