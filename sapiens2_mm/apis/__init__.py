from .boxes import BoxFile
from .inference import Inferencer
from .init_model import init_model
from .inputs import Failure, Picture
from .keypoint_conversion import convert_keypoints
from .model_zoo import find_model, list_models
from .person_detectors import MMDetDetector, MoveNetDetector
from .results import DenseResult, PoseResult, SegResult
from .shared_backbone import share_backbones
from .to_folder import predict_to_folder

__all__ = [
    'BoxFile',
    'DenseResult',
    'Failure',
    'Inferencer',
    'MMDetDetector',
    'MoveNetDetector',
    'Picture',
    'PoseResult',
    'SegResult',
    'convert_keypoints',
    'find_model',
    'init_model',
    'list_models',
    'predict_to_folder',
    'share_backbones',
]
