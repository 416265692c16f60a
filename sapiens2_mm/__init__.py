"""Sapiens2 human-centric vision transformers for the OpenMMLab libraries."""

__version__ = '0.1.0'
