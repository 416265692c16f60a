"""What ``mmengine.hub.get_model('sapiens2_mm::...')`` asks a package for."""

from . import registry  # noqa: F401


def register_all_modules() -> None:
    """Nothing to do: a name with our prefix is found by itself."""
