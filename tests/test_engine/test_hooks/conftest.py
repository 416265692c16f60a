from tiny_models import save

__all__ = ['save']  # a fixture
