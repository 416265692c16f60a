"""Read torch and mmengine pickles without running code from them.

Trust decision: a checkpoint is data. ``torch.load(weights_only=True)`` cannot read
the files that mmengine writes (they hold numpy values and ``HistoryBuffer`` objects
with references to methods), and a full unpickler runs whatever the file asks for.
Here a pickle may name only the globals of one table. Each entry is a function of
ours that is harmless for every argument, so that what a file can do at most is to
build plain values; nothing it names is imported.

``torch.load`` itself is not changed for anybody: our unpickler is handed to it by its
``pickle_module`` argument.
"""

import pickle
import sys
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import torch
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer
from torch import Tensor

_ONE_CYCLE = 'OneCycleParamScheduler'
_NATIVE_BYTE_ORDERS = ('|', '=', '<' if sys.byteorder == 'little' else '>')
_ARRAY_KINDS = 'biufcSU'


class UnsafePickleError(pickle.UnpicklingError):
    """A pickle asks for something that plain data does not need."""


class _History(HistoryBuffer):
    """Becomes an mmengine ``HistoryBuffer`` that took over numbers only."""

    def __setstate__(self, state: dict) -> None:
        logs, counts = state['_log_history'], state['_count_history']
        if not isinstance(logs, np.ndarray) or not isinstance(counts, np.ndarray):
            raise UnsafePickleError('HistoryBuffer with a history that is no array')
        HistoryBuffer.__init__(self, max_length=int(state['max_length']))
        self._log_history, self._count_history = logs, counts
        self.__class__ = HistoryBuffer


def _getattr(owner: Any, name: Any) -> Any:
    # mmengine pickles the statistics methods of HistoryBuffer, always the same four,
    if owner is _History and name in ('min', 'max', 'mean', 'current'):
        return f'HistoryBuffer.{name}'
    # and the curve of a one-cycle schedule, which a pickle cannot call.
    if owner is _ONE_CYCLE and name in ('_annealing_cos', '_annealing_linear'):
        return getattr(import_module('mmengine.optim').OneCycleParamScheduler, name)
    label = 'HistoryBuffer' if owner is _History else getattr(owner, '__name__', owner)
    raise UnsafePickleError(f'builtins.getattr({label}, {name!r})')


def _rebuild_tensor(
    storage: Any, offset: int, size: tuple, stride: tuple, *_: Any
) -> Tensor:
    # What may follow, gradient flag and hooks, is no part of a weight.
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    inside = 0 in size or last < storage._size()
    if min((offset, *size, *stride)) < 0 or not inside:
        raise pickle.UnpicklingError(f'a tensor of size {size} exceeds its storage')
    return torch._utils._rebuild_tensor(storage, offset, size, stride)


def _rebuild_parameter(data: Tensor, requires_grad: bool, *_: Any) -> Tensor:
    return torch.nn.Parameter(data, requires_grad=bool(requires_grad))


def _dtype(code: str, *_: Any) -> np.dtype:
    dtype = np.dtype(code) if isinstance(code, str) else None
    if dtype is None or dtype.kind not in _ARRAY_KINDS:
        raise UnsafePickleError(f'numpy.dtype({code!r})')
    return dtype


def _array(*_: Any) -> np.ndarray:
    return np.empty(0, np.uint8)


def _scalar(dtype: np.dtype, data: bytes) -> np.generic:
    if not isinstance(dtype, np.dtype) or not isinstance(data, bytes):
        raise UnsafePickleError('numpy scalar that is not made of bytes')
    return np.frombuffer(data, dtype, count=1)[0]


def _encode(text: str, encoding: str) -> bytes:
    if encoding != 'latin1':
        raise UnsafePickleError(f'_codecs.encode to {encoding!r}')
    return str.encode(text, 'latin1')


def _bytes(*content: Any) -> bytes:
    if content:  # an empty array; others come by _codecs.encode
        raise UnsafePickleError(f'builtins.bytes of {len(content)} arguments')
    return b''


def _counter(counts: Any) -> Counter:
    if not isinstance(counts, dict):
        raise UnsafePickleError('collections.Counter that is not made of a dict')
    return Counter(counts)


def _config_dict(items: dict) -> ConfigDict:
    return ConfigDict(dict(items))


def _path(*parts: str) -> str:
    return str(PurePosixPath(*parts))


def _empty_dict(*_: Any) -> dict:
    return {}


_GLOBALS: dict[str, Any] = {
    'builtins.getattr': _getattr,
    'builtins.bytes': _bytes,
    'builtins.set': set,
    'builtins.frozenset': frozenset,
    'builtins.complex': complex,
    'collections.Counter': _counter,
    'collections.OrderedDict': OrderedDict,
    'collections.defaultdict': _empty_dict,
    '_codecs.encode': _encode,
    'mmengine.config.config.ConfigDict': _config_dict,
    'mmengine.logging.history_buffer.HistoryBuffer': _History,
    'mmengine.optim.scheduler.param_scheduler.OneCycleParamScheduler': _ONE_CYCLE,
    'numpy.ndarray': np.ndarray,
    'numpy.dtype': _dtype,
    'numpy.core.multiarray._reconstruct': _array,
    'numpy.core.multiarray.scalar': _scalar,
    'pathlib.PosixPath': _path,
    'pathlib.PurePosixPath': _path,
    'torch.Size': torch.Size,
    'torch.device': torch.device,
    'torch._utils._rebuild_tensor': _rebuild_tensor,
    'torch._utils._rebuild_tensor_v2': _rebuild_tensor,
    'torch._utils._rebuild_parameter': _rebuild_parameter,
}
# What a defaultdict may create; not callable here.
_GLOBALS.update((f'builtins.{name}', name) for name in ('list', 'dict', 'int', 'float'))
# ndarray is only an argument of _reconstruct; callable by itself it is not.
_CALLABLE = {
    id(value) for value in _GLOBALS.values() if callable(value) and value != np.ndarray
}
_RENAMED_MODULES = {
    'numpy._core.multiarray': 'numpy.core.multiarray',
    'pathlib._local': 'pathlib',
}


def _label(value: Any) -> str:
    name = getattr(value, '__qualname__', None) or type(value).__qualname__
    return f'{getattr(value, "__module__", type(value).__module__)}.{name}'


def _check_dtype_state(dtype: np.dtype, state: tuple) -> None:
    if state[1] not in _NATIVE_BYTE_ORDERS or any(v is not None for v in state[2:5]):
        raise UnsafePickleError(f'numpy.dtype with the state {state!r}')


def _set_array_state(array: np.ndarray, state: tuple) -> None:
    _, _, dtype, _, data = state
    if not isinstance(dtype, np.dtype) or not isinstance(data, bytes):
        raise UnsafePickleError('numpy.ndarray that is not made of bytes')
    array.__setstate__(state)


def _set_dict_attributes(value: OrderedDict, state: dict) -> None:
    # torch stores module versions so; any other attribute could shadow a method.
    if set(state) != {'_metadata'} or not isinstance(state['_metadata'], dict):
        raise UnsafePickleError(f'OrderedDict with the attributes {sorted(state)}')
    value._metadata = state['_metadata']


_SET_STATE: dict[type, Callable[[Any, Any], None]] = {
    np.ndarray: _set_array_state,
    OrderedDict: _set_dict_attributes,
    _History: _History.__setstate__,
}


class RestrictedUnpickler(pickle._Unpickler):
    """The Python unpickler with every opcode that calls something under control.

    Raises:
        UnsafePickleError: names the global or the action that is refused.
    """

    dispatch = dict(pickle._Unpickler.dispatch)

    def load_binpersid(self) -> None:
        self.register_storage(self.stack[-1])
        super().load_binpersid()

    def register_storage(self, saved_id: Any) -> None:
        raise UnsafePickleError('a storage outside of a file of torch')

    def find_class(self, module: str, name: str) -> Any:
        if self.proto < 3:  # these protocols write the names of Python 2
            renamed = IMPORT_MAPPING.get(module, module)
            module, name = NAME_MAPPING.get((module, name), (renamed, name))
        full_name = f'{_RENAMED_MODULES.get(module, module)}.{name}'
        if full_name in _GLOBALS:
            return _GLOBALS[full_name]
        owner, _, attribute = full_name.rpartition('.')
        if '.' in name and owner in _GLOBALS:  # protocol 4 needs no getattr
            return _getattr(_GLOBALS[owner], attribute)
        if module == 'torch' and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        raise UnsafePickleError(full_name)

    def get_extension(self, code: int) -> None:
        raise UnsafePickleError(f'extension code {code} of copyreg')

    def _call(self, function: Any, args: Any) -> Any:
        if id(function) not in _CALLABLE or function is _History:
            raise UnsafePickleError(f'a call of {_label(function)}')
        return function(*args)

    def load_reduce(self) -> None:
        args = self.stack.pop()
        self.stack[-1] = self._call(self.stack[-1], args)

    def _instantiate(self, klass: Any, args: Any) -> None:
        self.append(self._call(klass, args))

    def load_newobj(self) -> None:
        args = self.stack.pop()
        klass = self.stack[-1]
        if klass is _History and not args:
            self.stack[-1] = _History.__new__(_History)
        else:
            self.stack[-1] = self._call(klass, args)

    def load_newobj_ex(self) -> None:
        raise UnsafePickleError(f'a call of {_label(self.stack[-3])} by keywords')

    def load_build(self) -> None:
        state = self.stack.pop()
        value = self.stack[-1]
        if isinstance(value, np.dtype):
            _check_dtype_state(value, state)
        elif type(value) in _SET_STATE:
            _SET_STATE[type(value)](value, state)
        else:
            raise UnsafePickleError(f'setting the state of {_label(value)}')

    dispatch[pickle.BINPERSID[0]] = load_binpersid
    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.NEWOBJ_EX[0]] = load_newobj_ex
    dispatch[pickle.BUILD[0]] = load_build


class RestrictedPickle:
    """What ``torch.load`` wants as ``pickle_module``, for one file.

    Args:
        num_bytes: key of a storage -> bytes that the file holds for it at most. torch
            would read on in the memory behind them.
    """

    __name__ = 'restricted_pickle'  # torch reads it, as of a module

    def __init__(self, num_bytes: Callable[[Any], int]) -> None:
        storages: set[Any] = set()
        self.storages = storages

        class Unpickler(RestrictedUnpickler):
            def register_storage(self, saved_id: Any) -> None:
                _, kind, key, _, count = saved_id[:5]
                size = count * getattr(kind, 'dtype', torch.uint8).itemsize
                if not 0 <= size <= num_bytes(key):
                    raise pickle.UnpicklingError(
                        f'storage {key!r} has {num_bytes(key)} bytes, not {size}'
                    )
                storages.add(key)

        self.Unpickler = Unpickler

    def load(self, file: Any, **options: Any) -> Any:
        value = RestrictedUnpickler(file, **options).load()
        # In the old format the keys of the bytes that follow come after the tensors.
        if self.storages - set(value if self.storages else ()):
            raise pickle.UnpicklingError('the bytes of some storages are missing')
        return value
