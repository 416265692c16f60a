"""The 29 body parts of Sapiens2: names, flip partners, loss weights, colors.

``SOURCES`` holds how the vocabularies of other annotations map to the 29 classes:
``sapiens_v1_28`` (the classes of Sapiens v1), ``dome34``, ``shutterstock52`` and
``internal33``. A list index is a source id; 255 is ignored.

Source: names, order, flip partners, loss weights and mappings are those of the
official configs; the colors are ours.
"""

import json
from pathlib import Path
from typing import Any

IGNORE_INDEX = 255

_TABLE: dict[str, Any] = json.loads(
    Path(__file__).with_name('humans29.json').read_text()
)

CLASS_WEIGHTS = tuple(row[2] for row in _TABLE['classes'])

# Colors are RGB. In a mirrored picture the two classes of a pair change places.
METAINFO: dict[str, Any] = dict(
    classes=tuple(row[0] for row in _TABLE['classes']),
    palette=[tuple(row[3]) for row in _TABLE['classes']],
    swap_classes=[(name, swap) for name, swap, *_ in _TABLE['classes'] if name < swap],
)

SOURCES: dict[str, dict[int, int]] = {
    source: {index: target for index, (_, target) in enumerate(rows)}
    for source, rows in _TABLE['sources'].items()
}
