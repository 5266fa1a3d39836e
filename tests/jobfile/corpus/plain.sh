#!/usr/bin/env bash
# just a script
set -e
make check
