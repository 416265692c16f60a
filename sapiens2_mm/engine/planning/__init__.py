"""What a training step costs, found without running it."""
