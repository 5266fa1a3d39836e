"""The `container` factory: a worker is a container of Docker or Podman on this machine: docs/operators/containers.md.

settings   a site's settings, and their checks
engine     calls of the engine's API over its unix socket, and what its errors mean
streams    what the engine sends in parts: the progress of a pull, and the output of a container
spec       what a container is: image, limits, mounts, labels, and the files that are put into it
containers the containers of one factory: found by name, made, started, listed, removed
networks   a network for each worker
services   containers beside a worker's, which live and die with it
wait       a program in the container, which lets the agent go on once the services are ready
relay      a program in the container, which connects its loopback to the local cloud
factory    the driver
"""
