"""The `fargate` factory: a worker is a task of ECS on Fargate. See docs/operators/fargate.md.

    settings       a site's settings, and their checks
    alternatives   the combinations of market and subnet, in the order in which they are tried
    definition     task definitions: what of a task RunTask cannot say
    boot           the program with which a container begins: it fetches the agent, and becomes it
    launch         RunTask: parameters, client token; trying the alternatives
    tasks          all calls to ECS
    errors         what ECS's error codes and reasons mean
    events         what EventBridge's events mean for a task
    factory        the driver

boto3 is imported when ECS is called, not before, so checking a site's settings does not need it.
"""
