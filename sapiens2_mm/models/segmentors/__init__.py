"""Segmentors; all need mmseg, see ``sapiens2_mm.models.HOST_CLASSES``."""
