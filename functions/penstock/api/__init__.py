"""The service over HTTP, one module per noun: its routes, the JSON they take and give, and how rows are shown.

A route is declared once, by a decorator on a function: the method, the path and a summary stand in the decorator, all
else in the function's type hints. `routes` reads requests by them, and `openapi` makes the OpenAPI document of them.

app        answers requests, whatever happens; refusals as RFC 9457 problem details
routes     the declaration of a route; arguments from the request, replies from the result
body       request bodies: JSON read into dataclasses, and what is wrong with it
shapes     from rows to the dataclasses that are sent, by the names of their fields
openapi    the OpenAPI document; run by developers
"""
