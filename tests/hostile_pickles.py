"""Pickles that ask for code, and a way to write them into files of torch."""

import builtins
import collections
import copyreg
import functools
import importlib
import os
import pickle
import subprocess
import types
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from mmengine.optim import OneCycleLR, OneCycleParamScheduler


class Calls:
    """Pickles as a call of ``function``."""

    def __init__(self, function, *args, state=None):
        self.reduced = (function, args) if state is None else (function, args, state)

    def __reduce__(self):
        return self.reduced


class Raw:
    """Pickles as given opcodes; ``torch.save`` accepts it as any object."""

    def __init__(self, opcodes: bytes):
        self.opcodes = opcodes


class RawPickler(pickle._Pickler):
    dispatch = dict(pickle._Pickler.dispatch)

    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, Raw):
            self.write(obj.opcodes)
        else:
            super().save(obj, save_persistent_id)


def glob(module: str, name: str) -> bytes:
    return f'c{module}\n{name}\n'.encode()


def text(value: str) -> bytes:
    return pickle.BINUNICODE + len(value).to_bytes(4, 'little') + value.encode()


MARKER = 'HOSTILE_CODE_RAN'
COMMAND = f'touch {MARKER}'
CODE = f"open('{MARKER}', 'w').close()"
HISTORY = glob('mmengine.logging.history_buffer', 'HistoryBuffer')
NEW_HISTORY = HISTORY + b')\x81'

HOSTILE = {
    # name: (what is pickled, the part of the message that names it)
    'os.system': (Calls(os.system, COMMAND), r'(posix|nt)\.system'),
    'eval': (Calls(eval, CODE), r'builtins\.eval'),
    'exec': (Calls(exec, CODE), r'builtins\.exec'),
    'subprocess': (Calls(subprocess.Popen, COMMAND.split()), r'subprocess\.Popen'),
    'compile': (Calls(compile, CODE, 'x', 'exec'), r'builtins\.compile'),
    'import': (Calls(importlib.import_module, 'os'), r'importlib\.import_module'),
    '__import__': (Calls(builtins.__import__, 'os'), r'builtins\.__import__'),
    'open': (Calls(open, MARKER, 'w'), r'(_io|io|builtins)\.open'),
    'getattr of a module': (
        Calls(getattr, Raw(glob('mmengine', 'logging')), 'HistoryBuffer'),
        r'mmengine\.logging',
    ),
    'getattr chain from HistoryBuffer': (
        Calls(getattr, HistoryBuffer, '__init__'),
        r"getattr\(HistoryBuffer, '__init__'\)",
    ),
    'getattr chain to globals': (
        Calls(
            getattr,
            Calls(getattr, HistoryBuffer, 'mean'),
            '__globals__',
        ),
        r"getattr\(HistoryBuffer\.mean, '__globals__'\)",
    ),
    'getattr of getattr': (Calls(getattr, getattr, '__self__'), r'getattr\('),
    'partial': (Calls(functools.partial, os.system, COMMAND), r'functools\.partial'),
    'torch.load': (Calls(torch.load, 'x.pth'), r'torch\.serialization\.load'),
    'torch.hub': (Calls(torch.hub.load, 'a/b', 'c'), r'torch\.hub\.load'),
    'numpy.load': (Calls(np.load, 'x.npy', None, True), r'numpy\S*\.load'),
    'nested pickle': (
        Calls(pickle.loads, pickle.dumps(Calls(os.system, COMMAND))),
        r'pickle\.loads',
    ),
    'attribute of a schedule': (
        Calls(getattr, OneCycleLR, '__init__'),
        r'mmengine\.\S+\.OneCycleLR',
    ),
    'attribute of the one-cycle schedule': (
        Calls(getattr, OneCycleParamScheduler, '__init__'),
        r"getattr\(OneCycleParamScheduler, '__init__'\)",
    ),
    'call of a curve': (
        Raw(
            glob('builtins', 'getattr')
            + b'('
            + glob(OneCycleParamScheduler.__module__, 'OneCycleParamScheduler')
            + text('_annealing_cos')
            + b'tR)R'
        ),
        'a call of',
    ),
    'Counter of an iterable': (Calls(collections.Counter, 'ab'), 'Counter that is'),
    'bytes of a number': (Calls(bytes, 1 << 40), 'builtins.bytes of 1 arguments'),
    'copyreg': (
        Calls(copyreg._reconstructor, HistoryBuffer, object, None),
        r'copyreg\._reconstructor',
    ),
    'dotted global': (Raw(glob('collections', 'OrderedDict.__init__')), 'OrderedDict'),
    'dotted into a module': (Raw(glob('torch', 'os.system')), r'torch\.os\.system'),
    'alias of builtins': (Raw(glob('torch._utils', 'builtins.eval')), 'eval'),
    'call of what getattr gave': (
        Raw(
            glob('builtins', 'getattr')
            + b'('
            + HISTORY
            + text('mean')
            + b't'
            + b'R'
            + b')R'
        ),
        'a call of',
    ),
    'HistoryBuffer by REDUCE': (Raw(HISTORY + b')R'), 'a call of'),
    'HistoryBuffer with arguments': (
        Raw(HISTORY + b'(' + text('x') + b't\x81'),
        'a call of',
    ),
    'new object by keywords': (Raw(HISTORY + b')}\x92'), 'by keywords'),
    'INST opcode': (Raw(b'(' + text(COMMAND) + b'ios\nsystem\n'), r'os\.system'),
    'OBJ opcode': (
        Raw(b'(' + glob('os', 'system') + text(COMMAND) + b'o'),
        r'os\.system',
    ),
    'extension code': (Raw(b'\x82\x01'), 'extension code 1'),
    'state of a class': (
        Raw(HISTORY + b'}' + text('mean') + text('x') + b'sb'),
        'setting the state',
    ),
    'state of a function': (
        Raw(glob('torch._utils', '_rebuild_tensor_v2') + b'}' + b'b'),
        'setting the state',
    ),
    'state of an ndarray class': (
        Raw(glob('numpy', 'ndarray') + b'}b'),
        'setting the state',
    ),
    'ndarray called': (Raw(glob('numpy', 'ndarray') + b')R'), 'a call of'),
    'OrderedDict with a method': (
        Raw(
            glob('collections', 'OrderedDict')
            + b')R}'
            + text('items')
            + glob('builtins', 'getattr')
            + b'sb'
        ),
        r"OrderedDict with the attributes \['items'\]",
    ),
    'object array': (np.array([{'a': 1}], dtype=object), r"numpy\.dtype\('O8?'\)"),
    'structured dtype': (np.zeros(1, [('a', 'O')]), r'numpy\.dtype'),
    'foreign byte order': (np.zeros(2, '>f4'), r'numpy\.dtype with the state'),
    'history that is no array': (
        Raw(
            NEW_HISTORY
            + b'}('
            + text('_log_history')
            + b']'
            + text('_count_history')
            + b']'
            + text('max_length')
            + b'K\x01'
            + b'ub'
        ),
        'history that is no array',
    ),
    'codec': (Calls(np.char.encode, 'x', 'zip'), r'numpy\S*\.encode'),
    'tensor subclass': (
        Calls(torch._tensor._rebuild_from_type_v2, os.system, str, (COMMAND,), {}),
        r'_rebuild_from_type_v2',
    ),
}


def save_raw(entries: Any, path: Path, form: str) -> None:
    """``torch.save`` in the form 'zip' or 'legacy', with ``Raw`` values."""
    module = types.ModuleType('raw_pickle')
    module.Pickler = RawPickler
    module.dump = lambda obj, file, protocol: RawPickler(file, protocol).dump(obj)
    torch.save(
        entries,
        path,
        pickle_module=module,
        _use_new_zipfile_serialization=form == 'zip',
    )
