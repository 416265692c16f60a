"""Optimizer wrappers and their constructors."""
