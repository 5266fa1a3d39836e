"""The ports on AWS, one module for each service."""
