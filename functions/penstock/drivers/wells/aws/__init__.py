"""What the wells in AWS (`sts`, `s3`) share: sessions of a role for one lease, and their end.

settings    a site's settings, and their checks
policies    session policies: checked with the settings, filled in for one lease
sessions    credentials for one lease, and their revocation
denials     inline policies on the role that deny everything to the sessions of one lease
prefixes    listing and deleting the objects below a prefix of a bucket
calls       clients, and what AWS's error codes mean
"""
