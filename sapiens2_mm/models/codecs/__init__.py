"""Keypoints to heatmaps and back: tensor functions, batched on the device."""

from .udp_heatmap import (
    decode_udp_heatmaps,
    encode_udp_heatmaps,
    heatmap_maximum,
    heatmap_pck,
)

__all__ = [
    'decode_udp_heatmaps',
    'encode_udp_heatmaps',
    'heatmap_maximum',
    'heatmap_pck',
]
