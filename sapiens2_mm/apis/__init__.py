from .dense import inference_dense
from .init_model import init_model
from .seg import inference_seg

__all__ = ['inference_dense', 'inference_seg', 'init_model']
