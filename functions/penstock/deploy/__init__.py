"""`penstock deploy`: the stack, from wherever Penstock is installed, to an AWS account.

    account    an AWS account and region, as the user's credentials see them
    options    the options of a deployment, which the stack itself remembers
    changes    a change set: what CloudFormation would do, then done or dropped
    run        all steps, in order

Node synthesises the stack, as everywhere. The CDK's own command is not used:
docs/decisions/0083-deploy-by-change-sets.md says why.
"""
