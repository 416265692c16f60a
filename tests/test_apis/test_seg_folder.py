import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

pytest.importorskip('mmseg')

from sapiens2_mm.apis import inference_seg, init_model
from sapiens2_mm.apis.seg_folder import segment_to_folder

CONFIG = 'configs/seg/sapiens2-tiny_deconv_1xb4_synthetic-humans-256x192.py'


@pytest.fixture(scope='module')
def model(repo_dir):
    torch.manual_seed(0)
    return init_model(repo_dir / CONFIG)


@pytest.fixture
def pictures(data_dir, tmp_path):
    """Two good pictures, one cut in half, and one text under the name of a picture."""
    folder = tmp_path / 'тест é'
    folder.mkdir()
    rgb = data_dir / 'synthetic_humans/rgb'
    (folder / '人 1.jpg').write_bytes((rgb / '000000.jpg').read_bytes())
    cut = (rgb / '000001.jpg').read_bytes()
    (folder / 'b.jpg').write_bytes(cut[: len(cut) // 2])
    (folder / 'c.jpg').write_text('text')
    (folder / 'notes.txt').write_text('text')
    Image.open(rgb / '000002.jpg').convert('L').save(folder / '人 1.png')
    return folder


def test_folder(model, pictures, tmp_path):
    out = tmp_path / 'out ü'
    failures = segment_to_folder(model, pictures, out)
    assert sorted(failures) == [str(pictures / 'b.jpg'), str(pictures / 'c.jpg')]
    assert all(path in message for path, message in failures.items())
    records = json.loads((out / 'predictions.json').read_text())['images']
    assert [r['image'] for r in records] == [
        str(pictures / '人 1.jpg'),
        str(pictures / '人 1.png'),
    ]
    for record, name in zip(records, ('人 1', '人 1_1'), strict=True):
        labels = np.load(out / record['label_map'])
        (result,) = inference_seg(model, record['image'])
        assert np.array_equal(labels, result.pred_sem_seg.data[0])
        assert labels.shape == (record['height'], record['width']) == (384, 288)
        assert sum(record['pixels'].values()) == 384 * 288
        image = Image.open(out / f'{name}_seg.png')
        assert np.array_equal(np.asarray(image), labels)
        colors = np.asarray(image.convert('RGB'))
        assert np.array_equal(colors, np.array(model.dataset_meta['palette'])[labels])
        assert Image.open(out / f'{name}.png').height == 384


def test_nothing_there(model, tmp_path):
    for source in (tmp_path / 'missing', tmp_path):
        with pytest.raises(FileNotFoundError, match='no file in'):
            segment_to_folder(model, source, tmp_path / 'out')


@pytest.mark.slow
def test_tool(model, pictures, repo_dir, tmp_path):
    checkpoint = tmp_path / 'seg.pth'
    torch.save(dict(state_dict=model.state_dict()), checkpoint)
    command = [sys.executable, repo_dir / 'tools/demo.py', repo_dir / CONFIG]
    done = subprocess.run(
        [*command, checkpoint, pictures], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    assert 'b.jpg' in done.stdout + done.stderr
    assert (tmp_path / 'outputs' / '人 1_seg.npy').exists()
    (pictures / 'b.jpg').unlink()
    (pictures / 'c.jpg').unlink()
    done = subprocess.run(
        [*command, checkpoint, pictures, '--out-dir', 'other'],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
