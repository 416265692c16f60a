"""Registry nodes of sapiens2_mm.

One child of every mmengine root node, scope ``sapiens2_mm``. Configs write
``type='sapiens2_mm.Name'``; mmengine then imports this module by itself, and the
``locations`` on first use.
"""

from mmengine import registry as root

from ._import_hooks import after_import
from ._lazy import LazyRegistry

# A process that uses us reads its checkpoints by our rules; one that only has us
# installed is left alone.
after_import(
    'mmengine.runner.checkpoint', 'sapiens2_mm.checkpoint.mmengine_loader:register'
)


def _node(parent: root.Registry, *locations: str) -> LazyRegistry:
    return LazyRegistry(
        parent.name,
        parent=parent,
        scope='sapiens2_mm',
        locations=[f'sapiens2_mm.{location}' for location in locations],
    )


MODELS = _node(root.MODELS, 'models')
MODEL_WRAPPERS = _node(root.MODEL_WRAPPERS, 'models')
WEIGHT_INITIALIZERS = _node(root.WEIGHT_INITIALIZERS, 'models')
TASK_UTILS = _node(root.TASK_UTILS, 'models')

DATASETS = _node(root.DATASETS, 'datasets')
DATA_SAMPLERS = _node(root.DATA_SAMPLERS, 'datasets')
TRANSFORMS = _node(root.TRANSFORMS, 'datasets')
FUNCTIONS = _node(root.FUNCTIONS, 'datasets')

METRICS = _node(root.METRICS, 'evaluation')
EVALUATOR = _node(root.EVALUATOR, 'evaluation')
VISUALIZERS = _node(root.VISUALIZERS, 'visualization')
VISBACKENDS = _node(root.VISBACKENDS, 'visualization')
INFERENCERS = _node(root.INFERENCERS, 'apis')

RUNNERS = _node(root.RUNNERS, 'engine')
RUNNER_CONSTRUCTORS = _node(root.RUNNER_CONSTRUCTORS, 'engine')
STRATEGIES = _node(root.STRATEGIES, 'engine')
LOOPS = _node(root.LOOPS, 'engine')
HOOKS = _node(root.HOOKS, 'engine')
LOG_PROCESSORS = _node(root.LOG_PROCESSORS, 'engine')
OPTIMIZERS = _node(root.OPTIMIZERS, 'engine')
OPTIM_WRAPPERS = _node(root.OPTIM_WRAPPERS, 'engine')
OPTIM_WRAPPER_CONSTRUCTORS = _node(root.OPTIM_WRAPPER_CONSTRUCTORS, 'engine')
PARAM_SCHEDULERS = _node(root.PARAM_SCHEDULERS, 'engine')
