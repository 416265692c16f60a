import json

import numpy as np
import pytest
from mmengine.config import Config
from PIL import Image
from plyfile import PlyData

from sapiens2_mm.apis.dense_folder import predict_to_folder
from sapiens2_mm.registry import MODELS


@pytest.fixture
def make_model(repo_dir):
    def make(task):
        (path,) = (repo_dir / 'configs' / task).glob('sapiens2-tiny_*.py')
        cfg = Config.fromfile(path)
        cfg.model.backbone.arch = dict(
            embed_dims=32, num_layers=1, num_heads=2, feedforward_channels=32
        )
        cfg.model.decode_head.update(
            in_channels=32, upsample_channels=(8, 8, 8, 8), conv_out_channels=(8,)
        )
        model = MODELS.build(cfg.model)
        model.init_weights()
        model.cfg = cfg
        return model.eval()

    return make


@pytest.fixture
def folder(tmp_path):
    """Three pictures of which two cannot be read, and a second one of a name."""
    root = tmp_path / 'тест 测试 é'
    root.mkdir()
    noise = np.random.default_rng(0).integers(0, 255, (60, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(root / '人 1.png')
    Image.fromarray(noise).save(root / '人 1.jpg')
    data = (root / '人 1.png').read_bytes()
    (root / 'cut.png').write_bytes(data[: len(data) // 2])
    (root / 'text.jpg').write_text('hello')
    (root / 'notes.txt').write_text('not looked at')
    return root


def test_bad_pictures_do_not_end_the_run(make_model, folder, tmp_path):
    out = tmp_path / 'aus gabe'
    failures = predict_to_folder(make_model('normal'), folder, out)
    assert {name.rsplit('/', 1)[1] for name in failures} == {'cut.png', 'text.jpg'}
    assert all(name in message for name, message in failures.items())
    names = {path.name for path in out.iterdir()}
    assert names == {
        *('人 1.png', '人 1.npz', '人 1_1.png', '人 1_1.npz'),
        'predictions.json',
    }
    records = json.loads((out / 'predictions.json').read_text())['images']
    assert [record['maps'] for record in records] == ['人 1.npz', '人 1_1.npz']
    normal = np.load(out / '人 1.npz')['pred_normal']
    assert normal.shape == (3, 60, 40) and normal.dtype == np.float32
    assert np.abs(np.linalg.norm(normal, axis=0) - 1).max() < 1e-3
    assert Image.open(out / '人 1.png').size == (80, 60)


def test_a_number_takes_no_other_picture_s_name(make_model, tmp_path):
    for name in ('a.jpg', 'a.png', 'a_1.png'):
        Image.new('RGB', (4, 4)).save(tmp_path / name)
    predict_to_folder(make_model('normal'), tmp_path, tmp_path / 'out')
    records = json.loads((tmp_path / 'out' / 'predictions.json').read_text())['images']
    maps = [record['maps'] for record in records]
    assert maps == ['a.npz', 'a_1.npz', 'a_1_1.npz']
    assert len(list((tmp_path / 'out').glob('*.npz'))) == 3


def test_point_clouds(make_model, folder, tmp_path):
    picture = folder / '人 1.png'
    assert predict_to_folder(make_model('pointmap'), picture, tmp_path, ply=True) == {}
    vertex = PlyData.read(str(tmp_path / '人 1.ply'))['vertex']
    assert len(vertex) == 60 * 40 and vertex['red'].dtype == np.uint8
    with pytest.raises(TypeError, match=r"predicts \['pred_normal'\]"):
        predict_to_folder(make_model('normal'), picture, tmp_path, ply=True)


def test_nothing_to_predict(make_model, tmp_path):
    model = make_model('normal')
    for source in (tmp_path, tmp_path / 'absent.jpg'):
        with pytest.raises(FileNotFoundError, match='no file in'):
            predict_to_folder(model, source, tmp_path / 'out')
    assert not (tmp_path / 'out').exists()
