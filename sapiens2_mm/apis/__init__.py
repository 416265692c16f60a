from .dense import inference_dense
from .init_model import init_model
from .pose import inference_pose
from .seg import inference_seg

__all__ = ['inference_dense', 'inference_pose', 'inference_seg', 'init_model']
