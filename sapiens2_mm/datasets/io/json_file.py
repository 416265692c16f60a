"""JSON files, with the path in every error."""

from collections.abc import Collection
from typing import Any

from mmengine.fileio import load


def load_json(path: str, backend_args: dict | None = None) -> Any:
    """Content of a JSON file.

    Args:
        path: local path, or any address that ``mmengine.fileio`` understands.
        backend_args: of ``mmengine.fileio.load``.

    Raises:
        OSError: if there is no such file.
        ValueError: if it is cut off or holds something else; names the file.
    """
    try:
        return load(path, file_format='json', backend_args=backend_args)
    except ValueError as err:  # of JSON or of its encoding
        raise ValueError(f'{path} is not a readable JSON file: {err}') from err


def check_entry(entry: Any, keys: Collection[str], where: str) -> None:
    """Raise a ``ValueError`` unless ``entry`` is an object with all of ``keys``."""
    if not isinstance(entry, dict):
        raise ValueError(f'{where}: expected an object, got {entry!r:.80}')
    missing = sorted(set(keys) - set(entry))
    if missing:
        raise ValueError(f'{where}: {missing} missing')


def check_id(value: Any, where: str) -> None:
    """Raise a ``ValueError`` unless ``value`` is a number or a text."""
    if not isinstance(value, int | float | str):
        raise ValueError(
            f'{where}: an id must be a number or a text, got {value!r:.80}'
        )
