from .dense import inference_dense
from .init_model import init_model
from .model_zoo import find_model, list_models
from .pose import inference_pose
from .seg import inference_seg

__all__ = [
    'find_model',
    'inference_dense',
    'inference_pose',
    'inference_seg',
    'init_model',
    'list_models',
]
