"""What the factories in AWS have in common.

settings    the market, subnets, tags and prices in a site's settings, and their checks
tags        the tags of what they make
errors      from an error code of a service to what it means for Penstock
"""
