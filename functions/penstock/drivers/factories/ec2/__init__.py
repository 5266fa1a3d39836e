"""The `ec2` factory: a worker is an EC2 instance that runs the agent. See docs/operators/ec2.md.

    settings       a site's settings, and their checks
    alternatives   the combinations of type, market and subnet, in the order in which they are tried
    launch         RunInstances: parameters, user data, client token; trying the alternatives
    machines       tags; listing and terminating machines and volumes; console output
    errors         what EC2's error codes mean
    factory        the driver
    events         what EventBridge's events mean for a machine
    identity       instance identity documents

boto3 is imported when EC2 is called, not before, so checking a site's settings does not need it.
"""
