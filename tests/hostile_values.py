"""Values of a pickle that would take time or memory without bound, or break readers.

Each is the opcodes that push one value. ``SIZED`` may lie on storage '0' of the file,
which must have at least 4 numbers of float32.
"""

import pickle
import struct

from hostile_pickles import HISTORY, glob, text

MANY = 800_000
CONFIG = glob('mmengine.config.config', 'ConfigDict')
ORDERED = glob('collections', 'OrderedDict')
ENCODE = glob('_codecs', 'encode')
REBUILD = glob('torch._utils', '_rebuild_tensor_v2')
NEW_SET, ADD = b'\x8f', b'\x90'
DUP, PUT, GET = b'2', b'q\x01', b'h\x01'


def number(value: int) -> bytes:
    size = value.bit_length() // 8 + 1
    data = value.to_bytes(size, 'little', signed=True)
    return pickle.LONG4 + struct.pack('<i', size) + data


def numbers(*values) -> bytes:
    return b'(' + b''.join(map(number, values)) + b't'


def storage(
    count: int = 4,
    key: bytes = text('0'),
    kind: bytes = glob('torch', 'FloatStorage'),
    location: bytes = text('cpu'),
    name: str = 'storage',
    size: bytes = b'',
    rest: bytes = b'',
) -> bytes:
    count = size or number(count)
    return b'(' + text(name) + kind + key + location + count + rest + b'tQ'


def tensor(offset=0, size=(2,), stride=(1,), memory: bytes = b'', call: bytes = b'R'):
    size = size if isinstance(size, bytes) else numbers(*size)
    stride = stride if isinstance(stride, bytes) else numbers(*stride)
    args = (memory or storage()) + number(offset) + size + stride
    return REBUILD + b'(' + args + b'\x89' + ORDERED + b')Rt' + call


def array(shape: bytes, dtype: str = 'f4', data: bytes = b'C\x00') -> bytes:
    made = glob('numpy.core.multiarray', '_reconstruct')
    made += b'(' + glob('numpy', 'ndarray') + b'K\x00\x85C\x01btR'
    kind = glob('numpy', 'dtype') + b'(' + text(dtype) + b'\x89\x88tR'
    return made + b'(K\x01' + shape + kind + b'\x89' + data + b'tb'


TWICE = b')' + (DUP + b'\x86') * 60  # a tuple of 2 ** 60 empty tuples
TWICE_LIST = b']' + (PUT + b'](' + GET + GET + b'e') * 60
TWICE_DICT = b'}' + (PUT + b'}(' + text('a') + GET + text('b') + GET + b'u') * 60
DEEP = b')' + b'\x85' * 1_000_000
LONG_TEXT = text('x' * 1_000_000)

NESTED = {
    'a dict in itself': b'}' + PUT + text('a') + GET + b's',
    'a list in itself': b']' + PUT + GET + b'a',
    'a tuple in its list': b']' + PUT + GET + b'\x85a',
    'metadata in itself': ORDERED
    + b')R'
    + PUT
    + b'}'
    + text('_metadata')
    + b'}'
    + text('a')
    + GET
    + b'ssb',
    'doubling tuples': TWICE,
    'doubling lists': TWICE_LIST,
    'doubling dicts': TWICE_DICT,
    'doubling tuples as a key': b'}' + TWICE + b'Ns',
    'doubling tuples in a set': NEW_SET + b'(' + TWICE + ADD,
    'doubling tuples in a frozenset': b'(' + TWICE + b'\x91',
    'doubling tuples in set()': glob('builtins', 'set')
    + b']'
    + TWICE
    + b'a'
    + b'\x85R',
    'doubling tuples as a name': glob('builtins', 'getattr')
    + b'('
    + HISTORY
    + TWICE
    + b'tR',
    'doubling tuples as a codec': ENCODE + text('a') + TWICE + b'\x86R',
    'doubling tuples as a dtype': glob('numpy', 'dtype') + TWICE + b'\x85R',
    'doubling tuples as a device': glob('torch', 'device') + TWICE + b'\x85R',
    'doubling tuples as a size': glob('torch', 'Size') + TWICE + b'\x85R',
    'doubling tuples as pairs': ORDERED + TWICE + b'\x85R',
    'doubling dicts in a config': CONFIG + TWICE_DICT + b'\x85R',
    'doubling attributes': ORDERED + b')R}' + text('items') + TWICE + b'sb',
    'deep tuples': DEEP,
    'deep tuples as a key': b'}' + DEEP + b'Ns',
    'deep lists': b']' * 500_000 + b'a' * 499_999,
    'deep dicts': (b'}' + text('a')) * 200_000 + b'N' + b's' * 200_000,
    'deep configs': (CONFIG + b'}' + text('a')) * 2000 + b'N' + b's\x85R' * 2000,
}
COUNTED = {
    'lists without end': b'](' + b']' * MANY + b'e',
    'sets without end': b'](' + NEW_SET * MANY + b'e',
    'marks without end': b'(' * MANY + b't' * MANY,
    'memo without end': b'N' + b'\x94' * MANY,
    'duplicates without end': b'](N' + DUP * MANY + b'e',
    'histories without end': HISTORY + b'q\x01](' + b'h\x01)\x81' * 300_000 + b'e',
    'configs without end': CONFIG + b'q\x01](' + b'h\x01)R' * 300_000 + b'e',
    'paths of long text': glob('pathlib', 'PosixPath')
    + b'q\x01'
    + LONG_TEXT
    + b'q\x02]('
    + b'h\x01h\x02\x85R' * 9000
    + b'e',
    'copies of long text': ENCODE
    + b'q\x01'
    + LONG_TEXT
    + text('latin1')
    + b'\x86q\x02]('
    + b'h\x01h\x02R' * 9000
    + b'e',
    'copies of a long list': glob('builtins', 'set')
    + b'q\x01]('
    + b''.join(number(n) for n in range(40_000))
    + b'e\x85q\x02]('
    + b'h\x01h\x02R' * 9000
    + b'e',
    'tensors without end': tensor(call=b'q\x02').replace(REBUILD, REBUILD + b'q\x01', 1)
    + b']('
    + b'h\x01h\x02R' * 200_000
    + b'e',
}
ODD = {
    'a key that is a long number': b'}' + number(1 << 8_000_000) + b'Ns',
    'long numbers again and again': number(1 << 8_000_000)
    + PUT
    + b'}('
    + (GET + b'N') * 20_000
    + b'u',
    'a long decimal': b'I' + b'9' * 1_000_000 + b'\n',
    'text of 4 GB': b'X\xff\xff\xff\xffabc',
    'text of 4 EB': b'\x8d' + struct.pack('<Q', 1 << 62) + b'abc',
    'bytes of 4 EB': b'\x8e' + struct.pack('<Q', 1 << 62) + b'abc',
    'bytearray of 4 EB': b'\x96' + struct.pack('<Q', 1 << 62) + b'abc',
    'a number of negative length': b'\x8b' + struct.pack('<i', -5),
    'a buffer from elsewhere': b'\x97',
    'an unknown opcode': b'\xff',
    'a bytes key': b'}C\x01aNs',
    'a float key': b'}' + pickle.BINFLOAT + struct.pack('>d', 0.5) + b'Ns',
    'items of a tensor': tensor() + number(0) + number(1) + b's',
    'items of a config': CONFIG + b'}\x85R' + text('a') + TWICE_DICT + b's',
    'an array without its bytes': array(numbers(1 << 40)),
    'an array of nothing, long': array(numbers(1 << 61, 0)),
    'an array of negative shape': array(numbers(-1, -4), data=b'C\x10' + bytes(16)),
    'an array of 64 dimensions': array(numbers(*[1] * 64), data=b'C\x04' + bytes(4)),
    'an array of empty texts': array(numbers(1 << 61), 'U0'),
    'a dtype of 4 GB': array(numbers(1), 'U1000000000'),
    'a dtype of dates': array(numbers(1), 'M8[s]', b'C\x08' + bytes(8)),
    'a dtype of fields': array(numbers(1), 'i4,i4', b'C\x08' + bytes(8)),
    'a dtype of objects': array(numbers(1), 'O', b'C\x08' + b'\x41' * 8),
    'an array made of text': array(numbers(4), 'f4', text('abc')),
    'torch._dynamo': glob('torch', '_dynamo'),
    'torch._inductor': glob('torch._inductor', 'config'),
    'torch.ops': glob('torch', 'ops'),
    'torch.onnx': glob('torch', 'onnx'),
    'a module that prints': glob('this', 's'),
    'a module that opens a browser': glob('antigravity', 'webbrowser'),
}
TENSORS = {
    'a tensor of one number, expanded': tensor(0, (500_000_000,), (0,)),
    'a tensor beyond its storage': tensor(0, (50_000,), (1,)),
    'a tensor before its storage': tensor(-2),
    'a tensor of overlapping rows': tensor(0, (900, 900), (1, 1)),
    'a tensor of negative stride': tensor(3, (2,), (-1,)),
    'a tensor of negative size': tensor(0, (-2, -2), (1, 1)),
    'a tensor of long numbers': tensor(
        1 << 400_000, (1 << 4_000_000,), (1 << 400_000,)
    ),
    'a tensor of many dimensions': tensor(0, (1,) * 100_000, (1,) * 100_000),
    'a tensor of texts': tensor(0, b'(' + text('1') + b't'),
    'a tensor of doubling size': tensor(0, TWICE, TWICE),
    'a tensor of no storage': tensor(memory=text('0')),
    'a storage of 4 TB': tensor(memory=storage(1 << 40)),
    'a storage of a long number': tensor(memory=storage(1 << 8_000_000)),
    'a storage of negative size': tensor(memory=storage(-4)),
    'a storage of fractional size': tensor(memory=storage(size=b'G@\x10' + bytes(6))),
    'a storage that is not there': tensor(memory=storage(key=text('9999'))),
    'a storage elsewhere': tensor(memory=storage(key=text('../../outside/secret'))),
    'a storage named None': tensor(memory=storage(key=b'N')),
    'a storage named by doubling': tensor(memory=storage(key=TWICE)),
    'a storage nowhere': tensor(memory=storage(location=TWICE)),
    'a storage without kind': tensor(memory=storage(kind=text('float'))),
    'a storage of a module': tensor(memory=storage(name='module')),
    'a storage with a view': tensor(memory=storage(rest=numbers(0, 0, 4))),
    'a quantized storage': tensor(memory=storage(kind=glob('torch', 'QInt8Storage'))),
    'a quantized tensor': glob('torch._utils', '_rebuild_qtensor') + b')R',
    'a sparse tensor': glob('torch._utils', '_rebuild_sparse_tensor') + b')R',
    'a storage by text': b'P0\n',
}
VALUES = {**NESTED, **COUNTED, **ODD, **TENSORS}
