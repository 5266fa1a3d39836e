"""The crash sweep: real handlers on emulated AWS services, with one thing going wrong at each call of each of them.

emulator   MiniStack in this process, a clock that is moved by hand, flows that come to rest
site       the table, queues, bucket, flow and rule of the stack, and the System plugged into them
hub        a GitHub beside the account, called without a network
faults     what can go wrong at a call, and where it is made to
runtime    takes events from queues, flows, rules and clients, and calls the handlers
life       users and agents; one run from submit until nothing is left
scenarios  what users do
front      what GitHub says: scenarios of its front end
promises   what must be so whenever everything rests, and in the end
shown      what must be so of what GitHub shows
sweep      every scenario, every call, every mode
"""
