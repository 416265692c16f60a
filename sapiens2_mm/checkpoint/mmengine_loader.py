"""Make mmengine read checkpoints by ``read_checkpoint``.

Registered with mmengine's ``CheckpointLoader``, the documented place for that, by
``sapiens2_mm.registry``, which every use of ours begins with. From then on
``load_from``, ``resume``, ``init_cfg`` and ``load_checkpoint`` of every library read
local files, ``http(s)://`` and ``hf://`` by our rules; ``torch.load`` is untouched.

A file of mmengine holds the config of its run as text. mmengine executes that text when
a run is resumed and when an inferencer gets no config, so it is left out here.
"""

from types import ModuleType
from typing import Any

from .io.reader import read_checkpoint
from .layouts.names import to_our_names


def load_from_local(filename: str, map_location: Any = None) -> dict:
    checkpoint = read_checkpoint(filename, map_location)
    checkpoint['state_dict'] = to_our_names(checkpoint['state_dict'])
    drop_config(checkpoint)
    return checkpoint


def drop_config(checkpoint: dict) -> None:
    """Leave out the text that mmengine would execute."""
    hub = checkpoint.get('message_hub')
    info = hub.get('runtime_info') if isinstance(hub, dict) else None
    for entries in (checkpoint['meta'], info):
        if isinstance(entries, dict):
            entries.pop('config', None)
            entries.pop('cfg', None)


# mmengine writes the end of these names to its log.
def load_from_http(filename: str, map_location: Any = None) -> dict:
    return load_from_local(filename, map_location)


def load_from_hub(filename: str, map_location: Any = None) -> dict:
    return load_from_local(filename, map_location)


def register(module: ModuleType) -> None:
    """Register our readers with ``module``, which is ``mmengine.runner.checkpoint``."""
    register_scheme = module.CheckpointLoader.register_scheme
    register_scheme('', load_from_local, force=True)
    register_scheme(('http://', 'https://'), load_from_http, force=True)
    register_scheme('hf://', load_from_hub, force=True)
