from .one_euro import OneEuroFilter
from .reader import Frame, Video, read_video

__all__ = ['Frame', 'OneEuroFilter', 'Video', 'read_video']
