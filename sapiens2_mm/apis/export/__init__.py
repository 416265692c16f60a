"""Models as graphs that run without this package: ONNX files and torch programs."""

from .export import FORMATS, export_model
from .graph import Graph, graph_of
from .parity import Parity, check_parity, parity_table

__all__ = [
    'FORMATS',
    'Graph',
    'Parity',
    'check_parity',
    'export_model',
    'graph_of',
    'parity_table',
]
