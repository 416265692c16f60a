from .dense import inference_dense
from .init_model import init_model

__all__ = ['inference_dense', 'init_model']
