"""The team's own scope; a child of mmengine's root, next to sapiens2_mm."""

from mmengine.registry import MODELS as MMENGINE_MODELS
from mmengine.registry import Registry

MODELS = Registry('model', parent=MMENGINE_MODELS, scope='acme', locations=['acme'])
