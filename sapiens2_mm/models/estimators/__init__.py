"""Whole models of tasks that no host offers."""

from .dense_data_preprocessor import DenseDataPreprocessor
from .dense_estimator import DenseEstimator

__all__ = ['DenseDataPreprocessor', 'DenseEstimator']
