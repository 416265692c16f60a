"""Storages lie within the records of a file, and tensors within their storages."""

import pickle
import pickletools
import zipfile

import pytest
import torch

from sapiens2_mm.checkpoint import CheckpointError, read_checkpoint


def rewrite(path, change, compress=zipfile.ZIP_STORED):
    """Write the records of a file of torch.save anew, each after ``change``."""
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, 'w', compress) as archive:
        for name, data in records.items():
            archive.writestr(name, change(name, data))


def test_storage_is_not_read_beyond_its_record(tmp_path):
    path = tmp_path / 'a.pth'
    torch.save({'w': torch.ones(60), 'x': torch.ones(100)}, path)
    rewrite(path, lambda name, data: data[:16] if name.endswith('data/0') else data)
    with pytest.raises(CheckpointError, match="storage '0' has 16 bytes, not 240"):
        read_checkpoint(path)


def test_compressed_records_are_refused(tmp_path):
    path = tmp_path / 'a.pth'
    torch.save({'w': torch.zeros(1000)}, path)
    rewrite(path, lambda name, data: data)
    assert read_checkpoint(path)['state_dict']['w'].shape == (1000,)
    rewrite(path, lambda name, data: data, zipfile.ZIP_DEFLATED)
    with pytest.raises(CheckpointError, match='compressed or repeated records'):
        read_checkpoint(path)


class View:
    """Pickles as a tensor of any geometry over a storage of 4 numbers."""

    def __init__(self, *geometry):
        self.geometry = geometry

    def __reduce__(self):
        storage = torch.ones(4).storage()
        return torch._utils._rebuild_tensor_v2, (storage, *self.geometry, False, {})


@pytest.mark.parametrize('zipped', [True, False])
@pytest.mark.filterwarnings('ignore:TypedStorage is deprecated')
def test_tensors_lie_within_their_storage(zipped, tmp_path):
    def read(*geometry):
        content = {'w': torch.ones(1), 'v': View(*geometry)}
        path = tmp_path / 'a.pth'
        torch.save(content, path, _use_new_zipfile_serialization=zipped)
        return read_checkpoint(path)['state_dict']['v']

    assert read(1, (3,), (1,)).tolist() == [1, 1, 1]
    assert read(9, (0, 5), (1, 1)).shape == (0, 5)
    for geometry in (
        (0, (5,), (1,)),
        (2, (3,), (1,)),
        (0, (2, 2), (3, 2)),
        (-1, (2,), (1,)),
        (3, (2,), (-1,)),
        (1 << 62, (1,), (1,)),
    ):
        with pytest.raises(CheckpointError, match='exceeds its storage'):
            read(*geometry)


def test_old_format_without_the_bytes_of_a_storage_is_refused(tmp_path):
    path = tmp_path / 'a.pth'
    content = {'w': torch.ones(6), 'x': torch.ones(5)}
    torch.save(content, path, _use_new_zipfile_serialization=False)
    assert read_checkpoint(path)['state_dict']['x'].tolist() == [1] * 5
    with open(path, 'rb') as file:
        for _ in range(3):
            pickle.load(file)
        list(pickletools.genops(file))
        start = file.tell()
    data = path.read_bytes()
    path.write_bytes(data[:start] + pickle.dumps([], protocol=2))
    with pytest.raises(CheckpointError, match='bytes of some storages are missing'):
        read_checkpoint(path)
