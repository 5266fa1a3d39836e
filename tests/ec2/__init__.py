"""The `ec2` factory, against a fake of EC2 that misbehaves as EC2 does."""
