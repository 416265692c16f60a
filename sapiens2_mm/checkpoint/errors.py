"""What can be wrong with a checkpoint."""


class CheckpointError(ValueError):
    """A checkpoint cannot be read, or does not fit the model."""
