"""Load classes that need a host library only when they are asked for.

A package such as ``sapiens2_mm.models`` keeps one table of its host classes::

    HOST_CLASSES = {'PoseHead': ('sapiens2_mm.models.heads.pose_head', 'mmpose')}
    __getattr__ = host_getattr(__name__, HOST_CLASSES)

Both ``from sapiens2_mm.models import Sapiens2PoseHead`` and a config's
``type='sapiens2_mm.Sapiens2PoseHead'`` then import the host on first use.
"""

import importlib
import sys
from collections.abc import Callable
from typing import Any

from mmengine.registry import Registry

# What a user installs to get a host: host package -> extra of sapiens2_mm.
_EXTRAS = {
    'mmpose': 'pose',
    'mmseg': 'seg',
    'mmpretrain': 'pretrain',
    'webdataset': 'pretrain',
    'pycocotools': 'pose',
}


def load_host_class(name: str, module: str, host: str) -> type:
    """Import ``module`` and return its class ``name``.

    Raises:
        ImportError: if ``host`` is not installed; names the extra to install.
    """
    try:
        importlib.import_module(host)
    except ModuleNotFoundError as err:
        if err.name != host:
            raise
        raise ImportError(
            f'{name} needs {host}; install sapiens2_mm[{_EXTRAS[host]}]'
        ) from err
    return getattr(importlib.import_module(module), name)


def host_getattr(
    package: str, table: dict[str, tuple[str, str]]
) -> Callable[[str], Any]:
    """Make the module-level ``__getattr__`` that serves ``table``."""

    def __getattr__(name: str) -> Any:
        if name not in table:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        return load_host_class(name, *table[name])

    return __getattr__


class LazyRegistry(Registry):
    """An mmengine registry that also finds the host classes of its locations."""

    def get(self, key: str) -> type | None:
        if isinstance(key, str):
            scope, name = self.split_scope_key(key)
            if scope in (None, self.scope) and name not in self._module_dict:
                self.import_from_location()
                for location in self._locations:
                    table = getattr(sys.modules.get(location), 'HOST_CLASSES', {})
                    if name in table:
                        load_host_class(name, *table[name])
        return super().get(key)
