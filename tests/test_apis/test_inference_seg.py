import numpy as np
import pytest
import torch
from mmengine.config import Config
from PIL import Image

pytest.importorskip('mmseg')

from sapiens2_mm.apis import Inferencer, init_model

CONFIG = 'configs/seg/sapiens2-tiny_deconv_1xb4_synthetic-humans-256x192.py'


@pytest.fixture(scope='module')
def model(repo_dir):
    torch.manual_seed(0)
    small = {
        'model.backbone.arch.embed_dims': 32,
        'model.backbone.arch.num_layers': 2,
        'model.backbone.arch.num_heads': 2,
        'model.backbone.arch.feedforward_channels': 64,
        'model.decode_head.in_channels': 32,
        'model.decode_head.deconv_out_channels': (16, 16, 8, 8),
    }
    return init_model(repo_dir / CONFIG, cfg_options=small)


def predict(model, images, batch_size=1):
    return list(Inferencer(model)(images, batch_size=batch_size))


def labels(results):
    return [result.labels for result in results]


def picture(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def test_paths_arrays_and_sizes(model, tmp_path):
    images = [picture(64, 48), picture(48, 64, 1), picture(33, 90, 2)]
    folder = tmp_path / 'тест é'
    folder.mkdir()
    paths = []
    for index, image in enumerate(images):
        paths.append(folder / f'人 {index}.png')
        Image.fromarray(image[..., ::-1]).save(paths[-1])
    together = labels(predict(model, images, batch_size=3))
    assert [m.shape for m in together] == [(64, 48), (48, 64), (33, 90)]
    assert together[0].dtype == np.int64
    alone = labels(predict(model, paths, batch_size=1))
    for a, b in zip(alone, together, strict=True):
        assert np.array_equal(a, b)
    assert len(predict(model, paths[0])) == 1
    assert predict(model, []) == []


def test_kinds_of_files_give_the_same_labels(model, tmp_path):
    gray = picture(40, 30)[..., 0]
    rgb = Image.fromarray(gray).convert('RGB')
    alpha = Image.fromarray(gray).convert('LA')
    files = {
        'L': Image.fromarray(gray),
        'LA': alpha,
        'RGB': rgb,
        'RGBA': rgb.convert('RGBA'),
        'P': Image.fromarray(gray).convert('P'),
        'I;16': Image.fromarray(gray.astype(np.uint16) * 257),
    }
    for name, image in files.items():
        image.save(tmp_path / f'{name[0]}{len(name)}.png')
    paths = [tmp_path / f'{n[0]}{len(n)}.png' for n in files]
    arrays = [gray, gray[..., None], np.dstack([gray] * 4)]
    first, *others = labels(predict(model, [*paths, *arrays]))
    for other in others:
        assert np.array_equal(first, other)


def test_bad_file_is_named(model, tmp_path):
    (tmp_path / 'text.jpg').write_text('no image')
    with pytest.raises(ValueError, match=r'text\.jpg'):
        predict(model, tmp_path / 'text.jpg')


def test_what_is_no_image(model):
    array = picture(4, 4)
    for wrong, name in (
        (torch.zeros(3, 4, 4), 'Tensor'),
        ([array, None], 'NoneType'),
        (7.0, 'float'),
    ):
        with pytest.raises(TypeError, match=f'expected pictures as .*, got {name}'):
            predict(model, wrong)
    for size in (0, -1):
        with pytest.raises(ValueError, match=f'batch_size must be .* 1, got {size}'):
            predict(model, array, batch_size=size)


def test_images_of_different_sizes_without_a_resize(model, monkeypatch):
    cfg = Config(model.cfg._cfg_dict.to_dict())
    dataset = cfg.test_dataloader.dataset
    dataset.pipeline = [s for s in dataset.pipeline if 'Resize' not in s['type']]
    monkeypatch.setattr(model, 'cfg', cfg)
    images = [picture(64, 48), picture(48, 64, 1), picture(64, 48, 2)]
    together = labels(predict(model, images, batch_size=3))
    assert [m.shape for m in together] == [(64, 48), (48, 64), (64, 48)]
    for image, result in zip(images, together, strict=True):
        (alone,) = labels(predict(model, image))
        assert np.array_equal(alone, result)


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_on_the_cpu(model, dtype):
    with torch.autocast('cpu', dtype):
        (result,) = labels(predict(model, picture(40, 30)))
    assert result.shape == (40, 30)


def test_logits_on_request_are_float32(model):
    model.test_cfg['return_logits'] = True
    try:
        with torch.autocast('cpu', torch.bfloat16):
            (result,) = predict(model, picture(40, 30))
    finally:
        model.test_cfg['return_logits'] = False
    assert result.data_sample.seg_logits.data.dtype == torch.float32
    assert result.data_sample.seg_logits.data.shape == (29, 40, 30)


def test_labels_are_not_loaded(model, monkeypatch):
    """The pipelines with and without ground truth give the same."""
    (expected,) = labels(predict(model, picture(40, 30)))
    cfg = Config(model.cfg._cfg_dict.to_dict())
    monkeypatch.setattr(model, 'cfg', cfg)
    for pipeline in (cfg.test_pipeline, cfg.val_pipeline):
        cfg.test_dataloader.dataset.pipeline = pipeline
        (found,) = labels(predict(model, picture(40, 30)))
        assert np.array_equal(found, expected)
