#!/bin/ksh
#:#: name = 'korn shell'
#:#:#:variety='basic'
#:
echo "runs under bash all the same"
