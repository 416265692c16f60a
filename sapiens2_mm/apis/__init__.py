from .init_model import init_model

__all__ = ['init_model']
