"""Optional packages and anny's cache, checked without importing anny."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

REQUIRED = ('anny', 'warp', 'scipy', 'cv2', 'filelock', 'tqdm')
COMPACT_MODEL = '**/build_compact_model_data_*.safetensors'
FIRST_BUILD_NOTE = (
    'The first start builds the body model: about 70 s, 3.7 GB of memory for that '
    'time and 0.2 GB on disk in {folder} (set ANNY_CACHE_DIR to move it).'
)


def require_dependencies() -> None:
    """Raise a clear error if a package that the renderer needs is missing.

    Raises:
        ImportError: names the missing packages and the extra that brings them.
    """
    missing = [name for name in REQUIRED if find_spec(name) is None]
    if missing:
        raise ImportError(
            f'projects.synthetic_humans needs {", ".join(missing)}; '
            'install sapiens2_mm[synth]'
        )


def cache_dir() -> Path:
    """Folder of anny's model cache: ``ANNY_CACHE_DIR`` or anny's default."""
    return Path(os.getenv('ANNY_CACHE_DIR', Path.home() / '.cache' / 'anny'))


def first_build_pending() -> bool:
    """True if anny has not built any body model into its cache yet."""
    return not any(cache_dir().glob(COMPACT_MODEL))
