"""What must happen when another library is imported, whoever imports it.

``import sapiens2_mm``, which an installed package does as Python starts, calls
``install()``. That places one finder on ``sys.meta_path`` and imports no host and no
torch; the functions of the tables are imported when they are needed.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

# Module -> called with its name when its import begins, once.
BEFORE = {
    'mmengine.infer': 'sapiens2_mm.compat:read_checkpoints',
    'mmpretrain.models': 'sapiens2_mm.compat:disable_multimodal',
    'mmpose': 'sapiens2_mm.compat:replace_xtcocotools',
    'mmpose.models.heads.hybrid_heads.rtmo_head': 'sapiens2_mm.compat:lend_stand_ins',
    'mmseg.utils.tokenizer': 'sapiens2_mm.compat:lend_stand_ins',
}
# Module -> called with the module when it has been executed.
AFTER = {
    'mmcv': 'sapiens2_mm.compat:replace_compiled_ops',
    'mmengine.analysis': 'sapiens2_mm.compat:mend_flop_counter',
    'mmengine.config.utils': 'sapiens2_mm.compat:register_configs',
    'mmpose.models.heads.hybrid_heads.rtmo_head': 'sapiens2_mm.compat:remove_stand_ins',
    'mmpose.models.pose_estimators.base': 'sapiens2_mm.compat:spare_data_samples',
    'mmpose.structures.utils': 'sapiens2_mm.compat:revert_many_heatmaps',
    'mmseg.utils.tokenizer': 'sapiens2_mm.compat:remove_stand_ins',
}
# Packages that mmengine, mmcv or a host imports if they are there. Most expect only an
# ImportError, some only a ModuleNotFoundError, and end at anything else.
OPTIONAL = {
    *('Sophia', 'albumentations', 'apex', 'bitsandbytes', 'cityscapesscripts'),
    *('colossalai', 'dadaptation', 'deepspeed', 'dsdl', 'fairscale', 'ftfy', 'ldm'),
    *('lion_pytorch', 'mmdet', 'nibabel', 'osgeo', 'poseval', 'pycocoevalcap'),
    *('pycocotools', 'regex', 'tifffile', 'timm', 'torch_npu', 'transformers'),
    *('turbojpeg', 'xtcocotools'),
}
_importing: set[str] = set()
_said: set[str] = set()


@contextmanager
def _absent_if_broken(
    name: str, passed: type[Exception] = ModuleNotFoundError
) -> Iterator[None]:
    """Turn whatever the import of an optional package raises into "not installed"."""
    package = name.partition('.')[0]
    # What a package makes of its own errors is its own affair.
    if package not in OPTIONAL or package in _importing:
        yield
        return
    _importing.add(package)
    try:
        yield
    except (ModuleNotFoundError, passed):
        raise
    except Exception as err:
        message = (
            f'{name} cannot be imported ({type(err).__name__}: {err}); {package} is '
            'taken as not installed: repair or remove it'
        )
        if package not in _said:
            _said.add(package)
            warnings.warn(message)
        raise ModuleNotFoundError(message) from err
    finally:
        _importing.discard(package)


def _guard_attributes(module: ModuleType) -> None:
    """The same for what an optional package imports when an attribute is asked for."""
    find = getattr(module, '__getattr__', None)
    if find is not None:

        def __getattr__(attribute: str) -> Any:
            with _absent_if_broken(f'{module.__name__}.{attribute}', AttributeError):
                return find(attribute)

        vars(module)['__getattr__'] = __getattr__


class ImportHooks:
    """Finder that runs the functions of the tables; finds nothing of its own."""

    def __init__(self) -> None:
        self.before = dict(BEFORE)

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> ModuleSpec | None:
        if fullname in self.before:
            resolve_name(self.before.pop(fullname))(fullname)
        if fullname not in AFTER and fullname.partition('.')[0] not in OPTIONAL:
            return None
        others = (f for f in sys.meta_path if f is not self)
        with _absent_if_broken(fullname):
            specs = (finder.find_spec(fullname, path, target) for finder in others)
            spec = next((s for s in specs if s is not None), None)
        return spec if spec is None or spec.loader is None else _hooked(spec)


def _hooked(spec: ModuleSpec) -> ModuleSpec:
    create, execute = spec.loader.create_module, spec.loader.exec_module

    def create_module(spec: ModuleSpec) -> ModuleType | None:
        with _absent_if_broken(spec.name):
            return create(spec)

    def exec_module(module: ModuleType) -> None:
        name = module.__name__
        with _absent_if_broken(name):
            execute(module)
        if name in OPTIONAL:
            _guard_attributes(sys.modules[name])  # it may have put another one there
        if name in AFTER and name == spec.name:  # a zip file's loader serves others too
            resolve_name(AFTER[name])(module)

    spec.loader.create_module, spec.loader.exec_module = create_module, exec_module
    return spec


def after_import(name: str, function: str) -> None:
    """Have ``function`` (``'module:name'``) called with module ``name``.

    At once if it is imported already, else when it has been.
    """
    AFTER[name] = function
    if name in sys.modules:
        resolve_name(function)(sys.modules[name])


def install() -> None:
    """Prepare for the imports of the tables. Safe to call again."""
    if any(isinstance(finder, ImportHooks) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, ImportHooks())
    for name, function in AFTER.items():
        after_import(name, function)
    for name in OPTIONAL & sys.modules.keys():
        _guard_attributes(sys.modules[name])
