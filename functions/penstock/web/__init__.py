"""The service over HTTP: what handlers share, the routes, and what callers are shown.

entry        reading a request and answering it, whatever happens
jobs, site   the routes of users and operators
views        from rows to the JSON of `wire`
operations   every call as data; `openapi` makes the document from it
"""
