"""One picture or the pictures of a folder, one after the other."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mmengine
from mmengine.logging import print_log
from mmengine.utils import track_iter_progress

from sapiens2_mm.datasets.io.folder import list_images


def process_pictures(
    source: str | Path,
    out_dir: str | Path,
    predict: Callable[[Path, Path], dict[str, Any]],
    header: dict[str, Any] | None = None,
) -> dict[str, str]:
    """Predict pictures and list the results in ``out_dir/predictions.json``.

    A picture that cannot be read does not end the run: the others are processed, and
    it is named in the log at the end.

    Args:
        source: a picture, or a folder of them (not its subfolders).
        out_dir: is made if needed.
        predict: gets the picture's path and ``out_dir/NAME``, the path without ending
            of the files to write; NAME is the picture's, with a number if it is the
            second one of that name. Returns what ``predictions.json`` says of the
            picture, plain numbers and strings; raises ``ValueError`` if the picture
            cannot be read.
        header: what ``predictions.json`` says of all pictures.

    Returns:
        Pictures that could not be read -> why.

    Raises:
        FileNotFoundError: if ``source`` does not exist or is a folder without pictures.
    """
    source, out_dir = Path(source), Path(out_dir)
    paths = [source]
    if not source.is_file():
        paths = [Path(path) for path in list_images(str(source), recursive=False)]
    out_dir.mkdir(parents=True, exist_ok=True)
    names: set[str] = set()
    records, failures = [], {}
    for path in track_iter_progress(sorted(paths)):
        name, number = path.stem, 0
        while name in names:
            number += 1
            name = f'{path.stem}_{number}'
        try:
            record = predict(path, out_dir / name)
        except ValueError as err:
            failures[str(path)] = str(err)
            continue
        names.add(name)
        records.append(dict(image=str(path), **record))
    mmengine.dump(
        dict(header or {}, images=records),
        out_dir / 'predictions.json',
        indent=1,
        ensure_ascii=False,
        allow_nan=False,
    )
    for message in failures.values():
        print_log(message, logger='current', level=logging.ERROR)
    return failures
