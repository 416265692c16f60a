"""Synthetic humans: rendered people with exact ground truth for every task.

``python -m projects.synthetic_humans OUT --num-train 64 --num-val 16`` writes a
data set; README.md describes the files. Needs the extra ``sapiens2_mm[synth]``.
"""
