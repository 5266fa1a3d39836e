"""The `fargate` factory."""
