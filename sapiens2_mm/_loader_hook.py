"""Make mmengine read checkpoints by ``sapiens2_mm.checkpoint``.

``install()`` is called when ``sapiens2_mm.registry`` is imported. It registers our
readers with mmengine's ``CheckpointLoader``, the documented place for that, as soon as
mmengine's module is imported, so that naming a registry stays cheap. From then on
``load_from``, ``resume``, ``init_cfg`` and ``load_checkpoint`` of every library read
local files, ``http(s)://`` and ``hf://`` by our rules; ``torch.load`` is untouched.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_MODULE = 'mmengine.runner.checkpoint'


def _register(module: ModuleType) -> None:
    def load_from_local(filename: str, map_location: Any = None) -> dict:
        from sapiens2_mm.checkpoint import read_checkpoint
        from sapiens2_mm.checkpoint.layouts.names import to_our_names

        checkpoint = read_checkpoint(filename, map_location)
        checkpoint['state_dict'] = to_our_names(checkpoint['state_dict'])
        return checkpoint

    def load_from_http(filename: str, map_location: Any = None) -> dict:
        return load_from_local(filename, map_location)

    def load_from_hub(filename: str, map_location: Any = None) -> dict:
        return load_from_local(filename, map_location)

    register = module.CheckpointLoader.register_scheme
    register('', load_from_local, force=True)
    register(('http://', 'https://'), load_from_http, force=True)
    register('hf://', load_from_hub, force=True)


class _AfterImport(MetaPathFinder):
    """Runs ``_register`` once mmengine's module has been executed."""

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> ModuleSpec | None:
        if fullname != _MODULE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _register(module)

        spec.loader.exec_module = exec_module  # this loader serves this module only
        return spec


def install() -> None:
    """Register our readers, now or when mmengine's module is imported."""
    if _MODULE in sys.modules:
        _register(sys.modules[_MODULE])
    elif not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport())
