"""Names of the 308 keypoints as the shipped table orders them."""

from __future__ import annotations

import json
from pathlib import Path

TABLE_PATH = Path(__file__).with_name('keypoint_table.json')


def keypoint_names() -> list[str]:
    """The 308 names by id."""
    return [k['name'] for k in json.loads(TABLE_PATH.read_text())['keypoints']]
