"""Keypoints to heatmaps and back: batched on the device of the model."""

from .pck import heatmap_hits, heatmap_pck, mean_hits
from .separable import SeparableHeatmaps
from .targets import encode_targets, packed_targets
from .udp_heatmap import (
    decode_udp_heatmaps,
    encode_udp_heatmaps,
    heatmap_maximum,
    separable_udp_heatmaps,
)

__all__ = [
    'SeparableHeatmaps',
    'decode_udp_heatmaps',
    'encode_targets',
    'encode_udp_heatmaps',
    'heatmap_hits',
    'heatmap_maximum',
    'heatmap_pck',
    'mean_hits',
    'packed_targets',
    'separable_udp_heatmaps',
]
