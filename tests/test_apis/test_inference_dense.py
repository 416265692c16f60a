"""From any picture to maps of its own size."""

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from mmengine.config import Config
from PIL import Image

from sapiens2_mm.apis import Inferencer
from sapiens2_mm.registry import MODELS


def predict(model, images, masks=None, batch_size=1):
    found = Inferencer(model)(images, masks=masks, batch_size=batch_size)
    return [result.data_sample for result in found]


ARCH = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)
SIZE = (128, 96)


def make_model(task='albedo', resize=None):
    step = resize or dict(
        type='sapiens2_mm.Letterbox', size=SIZE, rounding='floor', with_maps=False
    )
    head = dict(
        type=f'sapiens2_mm.{task.title()}Head',
        in_channels=32,
        upsample_channels=(8, 8, 8, 8),
    )
    if task == 'pointmap':
        head.update(feature_size=(8, 6), scale_conv_out_channels=(8,))
    cfg = Config(
        dict(
            model=dict(
                type='sapiens2_mm.DenseEstimator',
                backbone=dict(
                    type='sapiens2_mm.Sapiens2',
                    arch=ARCH,
                    img_size=SIZE,
                    out_type='featmap',
                ),
                decode_head=head,
            ),
            test_dataloader=dict(
                dataset=dict(
                    pipeline=[
                        dict(type='sapiens2_mm.LoadImage'),
                        dict(
                            type='sapiens2_mm.LoadDenseAnnotations',
                            fields=['depth'],
                            with_camera=True,
                        ),
                        step,
                        dict(type='sapiens2_mm.PointmapTarget'),
                        dict(type='sapiens2_mm.PackDenseInputs'),
                    ]
                )
            ),
        )
    )
    torch.manual_seed(0)
    model = MODELS.build(cfg.model)
    model.init_weights()
    model.cfg = cfg
    return model.eval()


class InputAsAlbedo(torch.nn.Module):
    """A head that returns the colors of its input."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        mean, std = model.data_preprocessor.mean, model.data_preprocessor.std
        self.mean = torch.tensor(mean)[:, None, None] / 255
        self.std = torch.tensor(std)[:, None, None] / 255

    def forward(self, inputs):
        return inputs * self.std + self.mean


def echo_model(**kwargs):
    """A model whose albedo is the picture itself."""
    model = make_model(**kwargs)
    echo = InputAsAlbedo(model)
    model.extract_feat = lambda inputs: inputs
    model.decode_head.forward = echo.forward
    return model


def smooth_picture(height, width):
    rows, cols = np.mgrid[:height, :width]
    channels = [
        127 + 100 * np.sin(rows / max(height, 8) * 5 + k) * np.cos(cols / 9 + k)
        for k in range(3)
    ]
    return np.stack(channels, -1).round().astype(np.uint8)


RESIZES = {
    'letterbox': None,
    'stretch': dict(type='sapiens2_mm.DenseResize', size=SIZE, with_maps=False),
}


@pytest.mark.parametrize('resize', RESIZES)
@pytest.mark.parametrize(
    'size', [(200, 40), (40, 200), (1, 1), (65, 49), (128, 96), (300, 225), (33, 90)]
)
def test_output_matches_the_picture(size, resize):
    image = smooth_picture(*size)
    sample = predict(echo_model(resize=RESIZES[resize]), image)[0]
    albedo = sample.pred_albedo
    assert albedo.shape == (3, *size) and albedo.dtype == torch.float32
    expected = torch.from_numpy(image[..., ::-1].copy()).permute(2, 0, 1) / 255
    error = (albedo - expected).abs()
    assert error.mean() < 0.02
    # no border of padding: the rim is as good as the rest
    rim = torch.ones(size, dtype=torch.bool)
    rim[1:-1, 1:-1] = False
    assert error[:, rim].mean() < 0.04 and error.max() < 0.2


@pytest.mark.parametrize('task', ['normal', 'pointmap', 'albedo', 'matting', 'depth'])
def test_sizes_in_one_batch_or_alone(task):
    model = make_model(task)
    pictures = [smooth_picture(*size) for size in ((64, 48), (48, 64), (33, 90))]
    together = predict(model, pictures, batch_size=3)
    alone = predict(model, pictures, batch_size=1)
    for picture, one, other in zip(pictures, alone, together, strict=True):
        preds = [name for name, _ in one.items() if name.startswith('pred_')]
        assert preds
        for name in preds:
            value = one.get(name)
            error = (value - other.get(name)).abs().max()
            assert error <= 1e-4 * max(1, value.abs().max())
            if value.ndim == 3:
                assert value.shape[1:] == picture.shape[:2]
        if task == 'normal':
            assert (one.pred_normal.norm(dim=0) - 1).abs().max() < 1e-3


def test_kinds_of_pictures_agree(tmp_path):
    """A gray picture as L, RGB, RGBA, palette, 16-bit file, and as arrays."""
    gray = smooth_picture(40, 30)[..., 0]
    folder = tmp_path / 'тест 测试 é'
    folder.mkdir()
    rgb = Image.fromarray(np.stack([gray] * 3, -1))
    rgba = rgb.copy()
    rgba.putalpha(Image.fromarray(255 - gray))
    files = dict(
        l=Image.fromarray(gray),
        rgb=rgb,
        rgba=rgba,
        p=rgb.quantize(256, dither=Image.Dither.NONE),
        i16=Image.fromarray(gray.astype(np.uint16) * 257),
    )
    inputs = []
    for name, image in files.items():
        image.save(folder / f'人 {name}.png')
        inputs.append(folder / f'人 {name}.png')
    inputs += [gray, gray[..., None], np.stack([gray] * 4, -1)]
    model = make_model('albedo')
    first, *others = predict(model, inputs, batch_size=4)
    for other in others:
        torch.testing.assert_close(
            other.pred_albedo, first.pred_albedo, rtol=1e-4, atol=1e-5
        )
    assert first.img_path == str(inputs[0]) and others[-1].img_path is None


def test_paths_and_single_inputs(tmp_path):
    path = tmp_path / 'a b.png'
    cv2.imwrite(str(path), smooth_picture(40, 30))
    model = make_model()
    samples = [predict(model, item)[0] for item in (path, str(path), [path])]
    for sample in samples:
        assert (sample.pred_albedo == samples[0].pred_albedo).all()
        assert sample.ori_shape == (40, 30)
    assert predict(model, []) == []
    assert len(predict(model, (p for p in [path, path, path]), None, 2)) == 3
    with pytest.raises(TypeError, match=r'arrays \(H, W, 3\) uint8, got Tensor'):
        predict(model, torch.zeros(1, 3, 40, 30))
    for size in (0, -1):
        with pytest.raises(ValueError, match=f'batch_size must be .* 1, got {size}'):
            predict(model, path, batch_size=size)


def test_masks():
    picture = smooth_picture(40, 30)
    mask = np.zeros((40, 30), bool)
    mask[10:30, 5:20] = True
    model = make_model('normal')
    free, masked = (
        predict(model, [picture], masks=m)[0].pred_normal for m in (None, [mask])
    )
    assert (masked[:, ~mask] == 0).all()
    assert (masked[:, mask] == free[:, mask]).all()
    for masks in ([], [mask, mask], mask):
        with pytest.raises(ValueError, match=f'got 1 pictures and {len(masks)} masks'):
            predict(model, [picture], masks=masks)
    with pytest.raises(ValueError, match=r'mask of size \(30, 40\) does not fit'):
        predict(model, [picture], masks=[mask.T])


def test_steps_of_training_stay_out():
    model = make_model()
    pipeline = model.cfg.test_dataloader.dataset.pipeline
    pipeline.insert(-1, dict(type='sapiens2_mm.FilterByMask'))
    assert len(predict(model, smooth_picture(40, 30))) == 1  # is left out
    pipeline.insert(-1, dict(type='sapiens2_mm.DenseRandomCrop'))
    with pytest.raises(
        ValueError, match=r'DenseRandomCrop of test_dataloader.* remove it'
    ):
        predict(model, smooth_picture(40, 30))


def test_unreadable_picture_is_named(tmp_path):
    (tmp_path / 'bad.jpg').write_text('no')
    with pytest.raises(ValueError, match=r'cannot read image .*bad\.jpg'):
        predict(make_model(), tmp_path / 'bad.jpg')


def test_flat_plane_has_the_documented_axes():
    """Facing the camera is (0, 0, -1): z is the third channel and points forward."""
    model = make_model('normal')
    model.extract_feat = lambda inputs: inputs
    plane = torch.tensor([0.0, 0, -3])[None, :, None, None]
    model.decode_head.forward = lambda inputs: plane.expand(len(inputs), 3, *SIZE)
    normal = predict(model, smooth_picture(50, 70))[0].pred_normal
    assert torch.allclose(normal, torch.tensor([0.0, 0, -1])[:, None, None])


def test_metric_points_keep_their_pixels():
    """Canonical points of a plane come back in meters at the picture's size."""
    model = make_model('pointmap')
    model.extract_feat = lambda inputs: inputs
    rows, cols = torch.meshgrid(torch.arange(128.0), torch.arange(96.0), indexing='ij')
    points = torch.stack([cols, rows, 0 * rows + 10])[None]
    scale = torch.tensor([[2.0]])
    model.decode_head.forward = lambda inputs: (points, scale)
    sample = predict(model, smooth_picture(64, 48))[0]
    half = F.interpolate(points / 2, size=(64, 48), mode='bilinear')[0]
    torch.testing.assert_close(sample.pred_pointmap, half)
    assert (sample.pred_depth == 5).all() and sample.pred_scale == 2
