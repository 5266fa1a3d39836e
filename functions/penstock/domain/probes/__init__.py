"""Jobs that test the site itself: canaries and factory tests."""
