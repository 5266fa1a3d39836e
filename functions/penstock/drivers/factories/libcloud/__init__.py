"""The `libcloud` factory: a worker is a machine of any Apache Libcloud provider. See docs/operators/libcloud.md.

    settings       a site's settings, and their checks
    providers      how providers differ
    names          the names of machines, by which they are found again, because not every cloud has tags
    alternatives   the combinations of size and location, in the order in which they are tried
    launch         create_node: arguments; trying the alternatives
    nodes          listing, creating and destroying machines. All calls to a cloud are here
    errors         what errors mean
    factory        the driver

libcloud is imported when a cloud is called, not before. It is an extra: `pip install penstock[libcloud]`.
"""
