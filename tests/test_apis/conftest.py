from tiny_models import backbone, build, save

__all__ = ['backbone', 'build', 'save']  # fixtures
