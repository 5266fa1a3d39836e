"""Services of a site that make units over HTTP: the protocol, its client, and its server side.

    protocol    headers, collections, states and limits of the protocol, and its signatures
    settings    how a site names a service: its URL, the secret, and how long to wait
    transport   one HTTP request with limits on time and size
    client      signed requests to the service, and its signed answers
    errors      what the service's errors mean
    units       the units of one factory or well at its service: their list, and the proofs that one is clean or gone
    serving     a server side for services in Python. No function imports it
    openapi     writes the OpenAPI documents for services. No function imports it

The drivers are `wells.http`, `factories.http`, and `factories.hosts` if it has a controller. See
docs/operators/wells/http.md and docs/operators/http.md.
"""
