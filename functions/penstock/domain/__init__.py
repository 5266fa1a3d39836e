"""What is true. Standard library only: no clock, no dice, no environment, no AWS."""
