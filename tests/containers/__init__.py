"""The `container` factory.

fake       an engine on a real unix socket, with the errors that engines have
helpers    a factory at the fake, and an order
podman     a real engine, where the machine lets one run, and an image that is made of this machine's Python
"""
