"""The `libcloud` factory: a worker is a machine of any Apache Libcloud provider. See docs/operators/libcloud.md.

    settings       what a site may say
    keys           what is wrong with what it says
    credentials    from the references that a site gives to what they stand for
    dialects       what differs from provider to provider
    names          by what a machine is known to be ours: there are no tags that every cloud has
    alternatives   the ways to get a machine, in the order in which they are tried
    launch         one create_node call, whole
    codes          what errors mean
    nodes          what there is: list, create, end; every call to a cloud
    azure          what only Azure needs
    search         from one alternative to the next
    told           what of all that the core hears
    factory        the driver

Nothing here imports libcloud until a machine is asked for: it is an extra (`pip install penstock[libcloud]`).
"""
