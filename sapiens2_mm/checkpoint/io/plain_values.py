"""What a pickle may name, and the harmless functions that stand for it."""

import pickle
import reprlib
import sys
from collections import Counter, OrderedDict
from collections.abc import Iterable
from importlib import import_module
from math import prod
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import torch
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer
from torch import Tensor

from .limits import are_plain, check_keys

_ONE_CYCLE = 'OneCycleParamScheduler'
_NATIVE_BYTE_ORDERS = ('|', '=', '<' if sys.byteorder == 'little' else '>')
_ARRAY_KINDS = 'biufcSU'


class UnsafePickleError(pickle.UnpicklingError):
    """A pickle asks for something that plain data does not need."""


class History(HistoryBuffer):
    """Becomes an mmengine ``HistoryBuffer`` that took over numbers only."""

    def __setstate__(self, state: dict) -> None:
        logs, counts = state['_log_history'], state['_count_history']
        if not isinstance(logs, np.ndarray) or not isinstance(counts, np.ndarray):
            raise UnsafePickleError('HistoryBuffer with a history that is no array')
        HistoryBuffer.__init__(self, max_length=int(state['max_length']))
        self._log_history, self._count_history = logs, counts
        self.__class__ = HistoryBuffer


class Script(dict):
    """Attributes of a module or value of a TorchScript program, by their names."""

    def __init__(self) -> None:  # nothing can be called into it
        super().__init__()


def _untyped(value: Any, *_: str) -> Any:
    return value  # a list or dict; its type matters to a program only


def get_attribute(owner: Any, name: Any) -> Any:
    # mmengine pickles the statistics methods of HistoryBuffer, always the same four,
    if owner is History and name in ('min', 'max', 'mean', 'current'):
        return f'HistoryBuffer.{name}'
    # and the curve of a one-cycle schedule, which a pickle cannot call.
    if owner is _ONE_CYCLE and name in ('_annealing_cos', '_annealing_linear'):
        return getattr(import_module('mmengine.optim').OneCycleParamScheduler, name)
    label = 'HistoryBuffer' if owner is History else getattr(owner, '__name__', owner)
    raise UnsafePickleError(f'builtins.getattr({label!s:.80}, {reprlib.repr(name)})')


def rebuild_tensor(*_: Any) -> Tensor:
    raise UnsafePickleError('a tensor outside of a file of torch')


def _rebuild_parameter(data: Tensor, requires_grad: bool, *_: Any) -> Tensor:
    return torch.nn.Parameter(data, requires_grad=bool(requires_grad))


def _dtype(code: str, *_: Any) -> np.dtype:
    dtype = np.dtype(code) if isinstance(code, str) and len(code) < 16 else None
    if dtype is None or dtype.kind not in _ARRAY_KINDS:
        raise UnsafePickleError(f'numpy.dtype({reprlib.repr(code)})')
    return dtype


def _array(*_: Any) -> np.ndarray:
    return np.empty(0, np.uint8)


def _scalar(dtype: np.dtype, data: bytes) -> np.generic:
    if not isinstance(dtype, np.dtype) or not isinstance(data, bytes):
        raise UnsafePickleError('numpy scalar that is not made of bytes')
    return np.frombuffer(data, dtype, count=1)[0]


def _encode(text: str, encoding: str) -> bytes:
    if encoding != 'latin1':
        raise UnsafePickleError(f'_codecs.encode to {reprlib.repr(encoding)}')
    return str.encode(text, 'latin1')


def _bytes(*content: Any) -> bytes:
    if content:  # an empty array; others come by _codecs.encode
        raise UnsafePickleError(f'builtins.bytes of {len(content)} arguments')
    return b''


def _set(values: list) -> set:
    check_keys(values)
    return set(values)


def _frozenset(values: list) -> frozenset:
    check_keys(values)
    return frozenset(values)


def _ordered_dict(pairs: Iterable = ()) -> OrderedDict:
    check_keys(key for key, _ in pairs)
    return OrderedDict(pairs)


def _counter(counts: Any) -> Counter:
    if not isinstance(counts, dict):
        raise UnsafePickleError('collections.Counter that is not made of a dict')
    return Counter(counts)


def _config_dict(items: dict) -> ConfigDict:
    result = ConfigDict()  # its own constructor and update walk down all levels
    dict.update(result, items)
    return result


def _path(*parts: str) -> str:
    return str(PurePosixPath(*parts))


def _empty_dict(*_: Any) -> dict:
    return {}


GLOBALS: dict[str, Any] = {
    'builtins.getattr': get_attribute,
    'builtins.bytes': _bytes,
    'builtins.set': _set,
    'builtins.frozenset': _frozenset,
    'builtins.complex': complex,
    'collections.Counter': _counter,
    'collections.OrderedDict': _ordered_dict,
    'collections.defaultdict': _empty_dict,
    '_codecs.encode': _encode,
    'mmengine.config.config.ConfigDict': _config_dict,
    'mmengine.logging.history_buffer.HistoryBuffer': History,
    'mmengine.optim.scheduler.param_scheduler.OneCycleParamScheduler': _ONE_CYCLE,
    'numpy.ndarray': np.ndarray,
    'numpy.dtype': _dtype,
    'numpy.core.multiarray._reconstruct': _array,
    'numpy.core.multiarray.scalar': _scalar,
    'pathlib.PosixPath': _path,
    'pathlib.PurePosixPath': _path,
    'torch.Size': torch.Size,
    'torch.device': torch.device,
    'torch._utils._rebuild_tensor': rebuild_tensor,
    'torch._utils._rebuild_tensor_v2': rebuild_tensor,
    'torch._utils._rebuild_parameter': _rebuild_parameter,
}
SCRIPT_MODULE = '__torch__'  # what the names of a program's own classes begin with
GLOBALS[SCRIPT_MODULE] = Script
GLOBALS.update(
    (f'torch.jit._pickle.{name}', _untyped)
    for name in ('restore_type_tag', 'build_intlist', 'build_doublelist')
    + ('build_boollist', 'build_tensorlist')
)
ATTRIBUTE_OWNERS = [key for key, v in GLOBALS.items() if v in (History, _ONE_CYCLE)]
# What a defaultdict may create; not callable here.
GLOBALS.update((f'builtins.{name}', name) for name in ('list', 'dict', 'int', 'float'))
# ndarray is only an argument of _reconstruct; callable by itself it is not.
CALLABLE = {
    id(value) for value in GLOBALS.values() if callable(value) and value != np.ndarray
}


def _check_dtype_state(dtype: np.dtype, state: tuple) -> None:
    if state[1] not in _NATIVE_BYTE_ORDERS or any(v is not None for v in state[2:5]):
        raise UnsafePickleError(f'numpy.dtype with the state {reprlib.repr(state)}')


def _set_array_state(array: np.ndarray, state: tuple) -> None:
    _, shape, dtype, _, data = state
    if not isinstance(dtype, np.dtype) or not isinstance(data, bytes):
        raise UnsafePickleError('numpy.ndarray that is not made of bytes')
    size = dtype.itemsize * prod(shape) if are_plain(shape) else -1
    if size != len(data) or len(shape) > 32 or max(shape, default=0) > len(data) + 999:
        raise pickle.UnpicklingError(f'a numpy.ndarray of {len(data)} bytes')
    array.__setstate__(state)


def _set_dict_attributes(value: OrderedDict, state: dict) -> None:
    # torch stores module versions so; any other attribute could shadow a method.
    if set(state) != {'_metadata'} or not isinstance(state['_metadata'], dict):
        raise UnsafePickleError(
            f'OrderedDict with the attributes {reprlib.repr(sorted(state))}'
        )
    value._metadata = state['_metadata']


def set_state(value: Any, state: Any) -> None:
    """What ``__setstate__`` would do, for the few types that need it."""
    if isinstance(value, np.dtype):
        _check_dtype_state(value, state)
    elif type(value) is np.ndarray:
        _set_array_state(value, state)
    elif type(value) is OrderedDict:
        _set_dict_attributes(value, state)
    elif type(value) is Script and type(state) is dict:
        value.update(state)
    elif type(value) is History:
        value.__setstate__(state)
    else:
        raise UnsafePickleError(f'setting the state of {label(value)}')


def label(value: Any) -> str:
    """Module and name of a function, a class, or the class of a value."""
    name = getattr(value, '__qualname__', None) or type(value).__qualname__
    return f'{getattr(value, "__module__", type(value).__module__)}.{name}'
