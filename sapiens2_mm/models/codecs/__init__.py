"""Keypoints to heatmaps and back: batched on the device of the model."""

from .targets import encode_targets, packed_targets
from .udp_heatmap import (
    decode_udp_heatmaps,
    encode_udp_heatmaps,
    heatmap_maximum,
    heatmap_pck,
)

__all__ = [
    'decode_udp_heatmaps',
    'encode_targets',
    'encode_udp_heatmaps',
    'heatmap_maximum',
    'heatmap_pck',
    'packed_targets',
]
