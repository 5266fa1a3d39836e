"""What wells in AWS share: sessions of a role for one lease, and their end.

policies    what a session may do: checked when the site is, filled in for one lease
sessions    credentials for one lease
denials     the end of all sessions of one lease, listed for as long as one could last
prefixes    what is in a bucket below one prefix, and its end
calls       every call, and what its errors mean to us (codes)
keys        what a site may say
"""
