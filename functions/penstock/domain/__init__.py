"""The rules, as pure functions of rows. Standard library only: no clock, no random numbers, no environment, no AWS."""
