"""Read torch and mmengine pickles without running code from them.

Trust decision: a checkpoint is data. ``torch.load(weights_only=True)`` cannot read
the files that mmengine writes (they hold numpy values and ``HistoryBuffer`` objects
with references to methods), and a full unpickler runs whatever the file asks for.
Here a pickle may name only the globals of one table. Each entry is a function of
ours that is harmless for every argument, so that what a file can do at most is to
build plain values; nothing it names is imported. What it builds is paid from a
``Budget``.
"""

import pickle
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

import torch
from torch import Tensor
from torch.storage import TypedStorage

from .limits import Budget, are_plain, check_keys, check_nesting
from .plain_values import (
    ATTRIBUTE_OWNERS,
    CALLABLE,
    GLOBALS,
    SCRIPT_MODULE,
    History,
    UnsafePickleError,
    get_attribute,
    label,
    rebuild_tensor,
    set_state,
)

_RENAMED_MODULES = {
    'numpy._core.multiarray': 'numpy.core.multiarray',
    'pathlib._local': 'pathlib',
}


@dataclass(frozen=True)
class StorageKind:
    """What the class of a storage stands for in a pickle."""

    dtype: torch.dtype


_STORAGES = {
    'UntypedStorage': StorageKind(torch.uint8),
    'DoubleStorage': StorageKind(torch.float64),
    'FloatStorage': StorageKind(torch.float32),
    'HalfStorage': StorageKind(torch.float16),
    'BFloat16Storage': StorageKind(torch.bfloat16),
    'LongStorage': StorageKind(torch.int64),
    'IntStorage': StorageKind(torch.int32),
    'ShortStorage': StorageKind(torch.int16),
    'CharStorage': StorageKind(torch.int8),
    'ByteStorage': StorageKind(torch.uint8),
    'BoolStorage': StorageKind(torch.bool),
    'ComplexDoubleStorage': StorageKind(torch.complex128),
    'ComplexFloatStorage': StorageKind(torch.complex64),
}
StorageReader = Callable[[torch.dtype, str, str, int], TypedStorage]


class RestrictedUnpickler(pickle._Unpickler):
    """The Python unpickler with every opcode that calls something under control.

    Args:
        file: open at the pickle.
        budget: what may be built.
        read_storage: (dtype, key, location, number of elements) -> storage. None in a
            pickle that has none.

    Raises:
        UnsafePickleError: names the global or the action that is refused.
        UnpicklingError: if the values are no plain data, or too many.
    """

    dispatch = dict(pickle._Unpickler.dispatch)

    def __init__(
        self,
        file: BinaryIO,
        budget: Budget,
        read_storage: StorageReader | None = None,
    ) -> None:
        super().__init__(file, encoding='utf-8')
        self.budget, self.read_storage = budget, read_storage
        self.readline = file.readline

    def read(self, size: int) -> bytes:
        data = self._file_read(min(size, self.budget.file_bytes))
        if len(data) != size:
            raise EOFError(f'the pickle ends in a value of {size} bytes')
        return data

    def load(self) -> Any:
        self.metastack, self.stack = [], []
        self.append = self.stack.append
        try:
            while True:
                self.budget.spend(1)
                self.dispatch[self.read(1)[0]](self)
        except pickle._Stop as stop:
            check_nesting(stop.value, self.budget.max_operations)
            return stop.value

    def load_frame(self) -> None:
        self.read(8)  # a hint for reading ahead

    def persistent_load(self, saved_id: Any) -> TypedStorage:
        if self.read_storage is None or type(saved_id) is not tuple:
            raise UnsafePickleError('a storage outside of a file of torch')
        name, kind, key, location, count, *views = saved_id
        if name != 'storage' or any(view is not None for view in views):
            raise pickle.UnpicklingError('a storage of torch 0.3 or before')
        texts = type(key) is type(location) is str
        if not isinstance(kind, StorageKind) or not texts or not are_plain([count]):
            raise pickle.UnpicklingError('a storage without kind, key or size')
        return self.read_storage(kind.dtype, key, location, count)

    def find_class(self, module: str, name: str) -> Any:
        if self.proto < 3:  # these protocols write the names of Python 2
            renamed = IMPORT_MAPPING.get(module, module)
            module, name = NAME_MAPPING.get((module, name), (renamed, name))
        full_name = f'{_RENAMED_MODULES.get(module, module)}.{name}'
        if module.partition('.')[0] == SCRIPT_MODULE:  # never imported
            return GLOBALS[SCRIPT_MODULE]
        if full_name in GLOBALS:
            return GLOBALS[full_name]
        owner, _, attribute = full_name.rpartition('.')
        if '.' in name and owner in ATTRIBUTE_OWNERS:  # protocol 4 needs no getattr
            return get_attribute(GLOBALS[owner], attribute)
        if module in ('torch', 'torch.storage', 'torch.cuda') and name in _STORAGES:
            return _STORAGES[name]
        # getattr would import what torch loads late
        if module == 'torch' and isinstance(vars(torch).get(name), torch.dtype):
            return getattr(torch, name)
        raise UnsafePickleError(f'{full_name:.100}')

    def get_extension(self, code: int) -> None:
        raise UnsafePickleError(f'extension code {code} of copyreg')

    def _call(self, function: Any, args: Any) -> Any:
        if id(function) not in CALLABLE or function is History:
            raise UnsafePickleError(f'a call of {label(function)}')
        self.budget.spend_on_call(args)
        if function is rebuild_tensor:
            return self._rebuild_tensor(*args)
        return function(*args)

    def _rebuild_tensor(
        self, storage: Any, offset: int, size: tuple, stride: tuple, *_: Any
    ) -> Tensor:
        # What may follow, gradient flag and hooks, is no part of a weight.
        if not isinstance(storage, TypedStorage):
            raise UnsafePickleError(f'a tensor of {label(storage)}')
        count = self.budget.spend_on_tensor(size, storage.dtype.itemsize)
        inside = are_plain((offset, *stride))
        if inside and count:
            last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
            inside = max(last + 1, count) <= storage._size()
        if not inside:
            raise pickle.UnpicklingError(
                f'a tensor of size {tuple(size)} exceeds its storage'
            )
        return torch._utils._rebuild_tensor(storage, offset, size, stride)

    def load_reduce(self) -> None:
        args = self.stack.pop()
        self.stack[-1] = self._call(self.stack[-1], args)

    def _instantiate(self, klass: Any, args: Any) -> None:
        self.append(self._call(klass, args))

    def load_newobj(self) -> None:
        args = self.stack.pop()
        klass = self.stack[-1]
        if klass is History and not args:
            self.budget.spend_on_call(args)
            self.stack[-1] = History.__new__(History)
        else:
            self.stack[-1] = self._call(klass, args)

    def load_newobj_ex(self) -> None:
        raise UnsafePickleError(f'a call of {label(self.stack[-3])} by keywords')

    def load_build(self) -> None:
        state = self.stack.pop()
        self.budget.spend_on_call(state if type(state) is tuple else (state,))
        set_state(self.stack[-1], state)

    def _extend(self, target: Any, values: list) -> None:
        if type(target) is list:
            target.extend(values)
        elif type(target) is set:
            check_keys(values)
            target.update(values)
        elif type(target) in (dict, OrderedDict):
            keys = values[::2]
            check_keys(keys)
            target.update(zip(keys, values[1::2], strict=True))
        else:
            raise UnsafePickleError(f'adding to {label(target)}')

    def load_one(self) -> None:
        value = self.stack.pop()
        self._extend(self.stack[-1], [value])

    def load_pair(self) -> None:
        pair = self.stack[-2:]
        del self.stack[-2:]
        self._extend(self.stack[-1], pair)

    def load_many(self) -> None:
        values = self.pop_mark()
        self._extend(self.stack[-1], values)

    def load_dict(self) -> None:
        values = self.pop_mark()
        self.append({})
        self._extend(self.stack[-1], values)

    def load_empty_set(self) -> None:
        self.budget.spend(2)  # it is as large as three other values
        super().load_empty_set()

    def load_frozenset(self) -> None:
        values = self.pop_mark()
        check_keys(values)
        self.append(frozenset(values))

    dispatch[pickle.FRAME[0]] = load_frame
    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.NEWOBJ_EX[0]] = load_newobj_ex
    dispatch[pickle.BUILD[0]] = load_build
    dispatch[pickle.APPEND[0]] = load_one
    dispatch[pickle.SETITEM[0]] = load_pair
    for opcode in (pickle.APPENDS, pickle.SETITEMS, pickle.ADDITEMS):
        dispatch[opcode[0]] = load_many
    dispatch[pickle.DICT[0]] = load_dict
    dispatch[pickle.EMPTY_SET[0]] = load_empty_set
    dispatch[pickle.FROZENSET[0]] = load_frozenset
