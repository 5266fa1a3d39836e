"""The `ec2` factory: a worker is an EC2 instance that runs the agent and ends with it. docs/operators/ec2.md tells it.

    settings       what a site may say
    keys           what is wrong with what it says
    alternatives   the ways to get a machine, in the order in which they are tried
    userdata       what the machine does when it boots
    launch         one RunInstances call, whole, with its token
    codes          what EC2's error codes mean
    machines       what there is: list, terminate, the console
    search         from one alternative to the next
    told           what of all that the core hears
    factory        the driver
    events         what EventBridge says of a machine
    identity       what a machine shows of itself

Nothing here imports boto3 until a machine is asked for: checking a site's settings needs none.
"""
