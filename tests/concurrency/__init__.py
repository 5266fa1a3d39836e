"""Many processes at once on a DynamoDB that is exact under concurrency: the real use cases, store and driver.

cloud       the emulator, with nothing on it but the table
site        what there is to be had, and what jobs ask for
ports       one process's queues and flows: messages in any order, some twice
record      what a process saw itself commit, and when; a file that is only appended to
faults      what the emulator never answers by itself, and a store without its conditions
crew        one process: it submits jobs, takes messages as the handlers do, and ends when there is nothing left
run         a cloud, a crew, and what they leave
elsewhere   a second opinion on single writes, of another implementation
audit       the promises, asked of the records and of the rows
__main__    the full size
"""
