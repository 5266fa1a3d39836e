"""The `http` well: any service that can create, show, clean, destroy and list. See docs/operators/wells/http.md.

protocol    the words and bounds of the protocol
signing     what is signed, both ways
settings    what a site may say, and what is wrong with it
options     what a job may ask for, by the site's schema
transport   one request over one connection that ends, whatever the other side does
client      a signed request, and the signed answer to it
codes       what answers mean that are not what was hoped for
well        the driver
serving     the other side of it, for those who write such a service in Python; never in a function
openapi     the document for those who write such a service; made by developers, never in a function
"""
