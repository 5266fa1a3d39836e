#!/bin/bash

echo
# buildomat: no name
# penstock: accepted
# Penstock runs it as a plain script.
