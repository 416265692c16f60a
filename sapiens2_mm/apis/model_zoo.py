"""Short names of the published models, read from the metafiles."""

from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import yaml

import sapiens2_mm


@dataclass(frozen=True)
class ModelInfo:
    """One model of a metafile.

    Args:
        name: the short name, such as ``sapiens2-1b_pose``; the config's name where the
            model has none.
        config: path of its config.
        weights: ``hf://`` address of its published weights.
        license: of the weights.
    """

    name: str
    config: Path
    weights: str | None = None
    license: str | None = None


def config_dir() -> Path:
    """The folder ``configs``, in a checkout as in an installed package."""
    return Path(sapiens2_mm.__file__).parent / '.mim' / 'configs'


@cache
def _models(folder: Path) -> dict[str, ModelInfo]:
    index = yaml.safe_load((folder / 'model-index.yml').read_text(encoding='utf-8'))
    found = {}
    for metafile in index['Import']:
        text = (folder.parent / metafile).read_text(encoding='utf-8')
        for entry in yaml.safe_load(text)['Models']:
            if 'Config' not in entry:
                continue
            info = ModelInfo(
                entry.get('Alias', entry['Name']),
                folder.parent / entry['Config'],
                entry.get('Weights'),
                entry.get('License'),
            )
            found[info.name] = found[entry['Name']] = info
    return found


def list_models(pattern: str = '*') -> list[str]:
    """Short names that ``init_model`` turns into a model with published weights.

    Args:
        pattern: shell pattern, such as ``'*_pose'`` or ``'sapiens2-1b_*'``.
    """
    found = {info.name for info in _models(config_dir()).values() if info.weights}
    return sorted(name for name in found if fnmatchcase(name, pattern))


def find_model(name: str) -> ModelInfo:
    """What the metafiles say about a short name or the name of a config.

    Raises:
        ValueError: if there is none; lists the published ones.
    """
    models = _models(config_dir())
    if name not in models:
        close = get_close_matches(name.lower(), models, n=3)
        hint = f'; did you mean one of {close}?' if close else ''
        raise ValueError(
            f'{name!r} is neither a config file nor the name of a model{hint}; '
            f'published models are {list_models()}'
        )
    return models[name]
