"""What must happen when another library is imported, whoever imports it.

``import sapiens2_mm`` calls ``install()``, which only places one finder on
``sys.meta_path``: it imports no host and no torch. The functions of the table are
imported when they are needed.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

# Module -> called without arguments when its import begins, once.
BEFORE = {
    'mmpretrain.models': 'sapiens2_mm.compat:disable_multimodal',
    'mmpose': 'sapiens2_mm.compat:replace_xtcocotools',
}
# Module -> called with the module when it has been executed.
AFTER = {
    'mmcv': 'sapiens2_mm.compat:replace_compiled_ops',
    'mmengine.runner.checkpoint': 'sapiens2_mm.checkpoint.mmengine_loader:register',
}


class ImportHooks(MetaPathFinder):
    """Runs the functions of both tables; finds nothing that others do not find."""

    def __init__(self) -> None:
        self.before = dict(BEFORE)

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> ModuleSpec | None:
        if fullname in self.before:
            resolve_name(self.before.pop(fullname))()
        if fullname not in AFTER:
            return None
        others = (f for f in sys.meta_path if f is not self)
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((s for s in specs if s is not None), None)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if module.__name__ == fullname:  # a loader of zip files serves others too
                resolve_name(AFTER[fullname])(module)

        spec.loader.exec_module = exec_module
        return spec


def install() -> None:
    """Prepare for the imports of the tables. Safe to call again."""
    if any(isinstance(finder, ImportHooks) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, ImportHooks())
    for name in AFTER.keys() & sys.modules.keys():  # imported before us
        resolve_name(AFTER[name])(sys.modules[name])
