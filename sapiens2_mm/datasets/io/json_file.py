"""JSON files and their records, and lists of names, with the path in every error."""

import json
from collections.abc import Mapping
from types import UnionType
from typing import Any

import mmengine.fileio

Id = int | float | str
Number = int | float
_NAMES = {
    Id: 'a number or a string',
    Number: 'a number',
    str: 'a string',
    list: 'a list',
    dict: 'an object',
}


def load_json(path: str, backend_args: dict | None = None) -> Any:
    """Content of a JSON file in UTF-8, -16 or -32, with a byte order mark or without.

    Args:
        path: local path, or any address that ``mmengine.fileio`` understands.
        backend_args: of ``mmengine.fileio.get``.

    Raises:
        OSError: if there is no such file.
        ValueError: if it is cut off or holds something else; names the file.
    """
    try:
        return json.loads(mmengine.fileio.get(path, backend_args=backend_args))
    except FileNotFoundError as err:
        raise FileNotFoundError(f'{path!r} does not exist; check data_root') from err
    except (ValueError, RecursionError) as err:  # of JSON or of its encoding
        raise ValueError(f'{path} is not a readable JSON file: {err}') from err


def load_names(path: str, backend_args: dict | None = None) -> list[str]:
    """Lines of a text file in UTF-8, without white space around them; no empty ones.

    Args:
        path: local path, or any address that ``mmengine.fileio`` understands.
        backend_args: of ``mmengine.fileio.get``.

    Raises:
        OSError: if there is no such file.
        ValueError: if it has another encoding; names file and line.
    """
    names = []
    data = mmengine.fileio.get(path, backend_args=backend_args)
    for number, line in enumerate(data.splitlines(), 1):
        try:
            name = line.decode('utf-8-sig').strip()
        except UnicodeDecodeError as err:
            raise ValueError(f'{path}, line {number}: save it as UTF-8: {err}') from err
        if name:
            names.append(name)
    return names


def check_records(
    records: Any, fields: Mapping[str, type | UnionType], where: str
) -> None:
    """Check the objects of a file.

    Args:
        records: what should be a list of objects.
        fields: the fields that each object needs, and their types.
        where: begins the error, such as ``'train.json: image'``.

    Raises:
        ValueError: names the first wrong record by its number.
    """
    if not isinstance(records, list):
        raise ValueError(f'{where}: expected a list, got {records!r:.80}')
    for number, record in enumerate(records):
        check_record(record, fields, f'{where} {number}')


def check_record(
    record: Any, fields: Mapping[str, type | UnionType], where: str
) -> None:
    """``check_records`` for one object."""
    if not isinstance(record, dict):
        raise ValueError(f'{where}: expected an object, got {record!r:.80}')
    for name, kind in fields.items():
        if not isinstance(record.get(name), kind):
            got = repr(record[name]) if name in record else 'nothing'
            raise ValueError(f'{where}: {name} must be {_NAMES[kind]}, got {got:.80}')
