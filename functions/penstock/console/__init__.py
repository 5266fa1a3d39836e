"""The console: the pages in web/, as a build of static files.

    node       the Node that builds it
    build      builds it when its sources have changed
    budget     how big its first view may be
    packages   what it is made of, and the licences of that
    headers    what a server must send with it

A wheel contains the build, so whoever installs Penstock needs none of this: penstock/sources.py.
"""
