"""Programs of ``torch.export``."""

import json
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from .metadata import KEY


def write_torch(program: ExportedProgram, meta: dict[str, Any], path: Path) -> None:
    """Write a program; the metadata is the extra file ``sapiens2_mm``."""
    for module in program.graph_module.modules():
        for node in getattr(module, 'graph', torch.fx.Graph()).nodes:
            node.meta.pop('stack_trace', None)  # where in which file it was made
    # not by its name: torch warns of each ending but .pt2
    with path.open('wb') as file:
        torch.export.save(program, file, extra_files={KEY: json.dumps(meta)})
