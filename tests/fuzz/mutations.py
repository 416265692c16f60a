"""Ways to spoil a file or a config."""

import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

NAN, INF = float('nan'), float('inf')
ODD = [None, -1, 0, 0.5, 1e308, NAN, INF, '', 'x', True, [], {}, [[]], [NAN], 10**30]


def spoil_file(path: Path, rng: np.random.Generator) -> str:
    """Change one file; returns what was done."""
    kinds = [*_ANY]
    if path.suffix == '.json':
        kinds += 6 * [_odd_value, _lost_entry, _twice]
    elif path.suffix == '.npy':
        kinds += 3 * [_odd_array, _pickled, _huge_array]
    elif path.suffix in ('.png', '.jpg'):
        kinds += 2 * [_other_picture, _huge_picture, _rotation_tag, _other_values]
    kind = kinds[rng.integers(len(kinds))]
    kind(path, rng)
    return kind.__name__.strip('_')


def spoil_config(cfg: dict, choices: dict[str, list], rng: np.random.Generator) -> str:
    """Set one of the options ``path.to.key`` to one of its values."""
    name = list(choices)[rng.integers(len(choices))]
    value = choices[name][rng.integers(len(choices[name]))]
    *parents, key = name.split('.')
    node: Any = cfg
    for parent in parents:
        node = node[int(parent) if parent.isdecimal() else parent]
    node[key] = value
    return f'{name} = {value!r:.60}'


def _cut(path: Path, rng: np.random.Generator) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: rng.integers(len(data))])


def _empty(path: Path, rng: np.random.Generator) -> None:
    path.write_bytes(b'')


def _wrong_start(path: Path, rng: np.random.Generator) -> None:
    path.write_bytes(b'<html>' + path.read_bytes()[6:])


def _flipped_bytes(path: Path, rng: np.random.Generator) -> None:
    data = bytearray(path.read_bytes())
    for place in rng.integers(len(data), size=rng.integers(1, 9)):
        data[place] = rng.integers(256)
    path.write_bytes(data)


def _missing(path: Path, rng: np.random.Generator) -> None:
    path.unlink()


def _folder(path: Path, rng: np.random.Generator) -> None:
    path.unlink()
    path.mkdir()


def _dangling(path: Path, rng: np.random.Generator) -> None:
    path.unlink()
    path.symlink_to(path.with_name('nowhere'))


def _neighbor(path: Path, rng: np.random.Generator) -> None:
    """The content of another file, of any kind."""
    files = sorted(p for p in path.parents[1].rglob('*') if p.is_file())
    path.write_bytes(files[rng.integers(len(files))].read_bytes())


_ANY = [
    *(_cut, _empty, _wrong_start, _flipped_bytes, _missing, _folder, _dangling),
    _neighbor,
]


def _nodes(content: Any) -> list[tuple[Any, Any]]:
    """All (container, key) of a JSON content."""
    keys: list = []
    if isinstance(content, dict):
        keys = list(content)
    elif isinstance(content, list):
        keys = list(range(len(content)))
    found = [(content, key) for key in keys]
    for key in keys:
        found += _nodes(content[key])
    return found


def _edit_json(path: Path, rng: np.random.Generator, edit: Any) -> None:
    content = json.loads(path.read_text())
    nodes = _nodes(content)
    edit(*nodes[rng.integers(len(nodes))])
    path.write_text(json.dumps(content))


def _odd_value(path: Path, rng: np.random.Generator) -> None:
    value = ODD[rng.integers(len(ODD))]
    _edit_json(path, rng, lambda node, key: node.__setitem__(key, value))


def _lost_entry(path: Path, rng: np.random.Generator) -> None:
    _edit_json(path, rng, lambda node, key: node.__delitem__(key))


def _twice(path: Path, rng: np.random.Generator) -> None:
    def edit(node: Any, key: Any) -> None:
        if isinstance(node, list):
            node.append(node[key])
        else:
            node[key] = [node[key], node[key]]

    _edit_json(path, rng, edit)


def _odd_array(path: Path, rng: np.random.Generator) -> None:
    array = np.load(path)
    dtypes = (bool, np.int8, np.uint8, np.uint16, np.int64, np.float16, np.float64)
    edits = [
        lambda a: a.astype(dtypes[rng.integers(len(dtypes))]),
        lambda a: a[: rng.integers(len(a))],
        lambda a: a[..., None],
        lambda a: a.ravel(),
        lambda a: a[0, 0],
        lambda a: a * np.float64(ODD[3 + rng.integers(4)]),
        lambda a: np.where(rng.random(a.shape) < 0.5, a, np.nan),
        lambda a: -a.astype(np.float32),
        lambda a: a.astype(complex),
        lambda a: a.astype(str),
        lambda a: np.zeros_like(a),
    ]
    with np.errstate(all='ignore'):
        np.save(path, edits[rng.integers(len(edits))](array))


def _pickled(path: Path, rng: np.random.Generator) -> None:
    np.save(path, np.array([{'a': 1}], object), allow_pickle=True)


def _huge_array(path: Path, rng: np.random.Generator) -> None:
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }"
    text = header.ljust(117) + '\n'
    path.write_bytes(b'\x93NUMPY\x01\x00' + struct.pack('<H', 118) + text.encode())


def _other_picture(path: Path, rng: np.random.Generator) -> None:
    """Another size and mode."""
    modes = ('1', 'L', 'LA', 'P', 'RGB', 'RGBA', 'I;16', 'I', 'F', 'CMYK')
    mode = modes[rng.integers(len(modes))]
    sizes = ((1, 1), (48, 64), (64, 48), (1, 300), (7, 5))
    image = Image.new(mode, sizes[rng.integers(len(sizes))], int(rng.integers(2)))
    stream = io.BytesIO()
    image.save(stream, 'TIFF' if mode in ('F', 'CMYK', 'I') else 'PNG')
    path.write_bytes(stream.getvalue())


def _huge_picture(path: Path, rng: np.random.Generator) -> None:
    """A PNG that declares more pixels than it has."""
    sides = (10**4, 3 * 10**4, 10**6, 2**31 - 1)
    width, height = (sides[i] for i in rng.integers(len(sides), size=2))
    stream = io.BytesIO()
    Image.new('RGB', (4, 4)).save(stream, 'PNG')
    data = stream.getvalue()
    head = b'IHDR' + struct.pack('>II', width, height) + data[24:29]
    path.write_bytes(data[:12] + head + struct.pack('>I', zlib.crc32(head)) + data[33:])


def _rotation_tag(path: Path, rng: np.random.Generator) -> None:
    exif = Image.Exif()
    exif[0x0112] = int(rng.integers(12))
    stream = io.BytesIO()
    Image.open(path).save(stream, 'PNG', exif=exif)
    path.write_bytes(stream.getvalue())


def _other_values(path: Path, rng: np.random.Generator) -> None:
    image = np.asarray(Image.open(path))
    noise = rng.integers(0, 256, image.shape).astype(image.dtype)
    values = (noise, np.zeros_like(image), np.full_like(image, 255))
    Image.fromarray(values[rng.integers(3)]).save(path, 'PNG')
