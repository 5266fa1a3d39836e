"""What other systems get wrong, each as a test that is named after it (docs/internals/known-violations.md).

No test waits or rolls dice: the other function runs in the middle of the one under test, between its reads and its
commit. Each test names the breakage of Penstock that it catches (breaks.py), and test_can_fail.py sees that it does.
"""
