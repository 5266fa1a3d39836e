"""The local cloud: an AWS emulator as a child process, with the same synthesised stack deployed to it.

cloud              starts and stops it
stack              the stack that it deploys: synthesised from app.py
deploy             the deployment: assets, CloudFormation, the first operator
giveback           ends jobs and cleans what they hold, before the cloud ends
guard              the process that starts the emulator, and ends whatever the local cloud started
emulator           the process that serves MiniStack and the API
fixes              what MiniStack does differently from AWS, corrected
lambda_processes   the processes of functions; forkserver: how they start within milliseconds
metering, prices   what AWS would bill
state              the folder where all this is recorded
run, bench         what `make run` and `make bench` do
"""
