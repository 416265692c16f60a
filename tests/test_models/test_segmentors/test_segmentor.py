import copy

import pytest
import torch
import torch.nn.functional as F

pytest.importorskip('mmseg')

from mmengine.config import ConfigDict
from mmseg.models import EncoderDecoder
from mmseg.structures import SegDataSample
from torch import nn

from sapiens2_mm.models import Sapiens2SegHead, Sapiens2Segmentor
from sapiens2_mm.models.segmentors.resize_argmax import resize_and_argmax
from sapiens2_mm.registry import MODELS

CONFIG = dict(
    type='sapiens2_mm.Sapiens2Segmentor',
    _scope_='mmseg',
    backbone=dict(
        type='sapiens2_mm.Sapiens2',
        arch=dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64),
        img_size=(64, 48),
        out_type='featmap',
    ),
    decode_head=dict(
        type='sapiens2_mm.Sapiens2SegHead',
        in_channels=32,
        num_classes=5,
        deconv_out_channels=(8, 8, 8, 8),
        conv_out_channels=(8, 8),
    ),
)
SIZES = [(64, 48), (48, 64), (33, 90)]


def build(**kwargs):
    torch.manual_seed(0)
    model = MODELS.build(ConfigDict({**copy.deepcopy(CONFIG), **kwargs}))
    model.init_weights()
    return model.eval()


def samples(*sizes, **meta):
    return [
        SegDataSample(
            metainfo=dict(ori_shape=s, img_shape=(64, 48), pad_shape=(64, 48), **meta)
        )
        for s in sizes
    ]


def plain_labels(model, inputs, size):
    logits = model.decode_head(model.backbone(inputs))
    return F.interpolate(logits, size, mode='bilinear').argmax(1)


@torch.no_grad()
def test_equals_mmseg_and_keeps_no_logits():
    model = build()
    assert isinstance(model, Sapiens2Segmentor)
    host = build(type='mmseg.EncoderDecoder', test_cfg=dict(mode='whole'))
    assert type(host) is EncoderDecoder
    host.load_state_dict(model.state_dict())
    inputs = torch.randn(3, 3, 64, 48)
    ours = model.predict(inputs, samples(*SIZES))
    theirs = host.predict(inputs, samples(*SIZES))
    for size, a, b in zip(SIZES, ours, theirs, strict=True):
        assert a.pred_sem_seg.data.shape == (1, *size)
        assert torch.equal(a.pred_sem_seg.data, b.pred_sem_seg.data)
        assert 'seg_logits' not in a


@torch.no_grad()
@pytest.mark.parametrize('mode', ['whole', 'slide'])
def test_batch_of_different_sizes_equals_single_images(mode):
    model = build(test_cfg=dict(mode=mode, crop_size=(64, 48), stride=(32, 32)))
    inputs = torch.randn(3, 3, 64, 48)
    together = model.predict(inputs, samples(*SIZES))
    for image, size, result in zip(inputs, SIZES, together, strict=True):
        (alone,) = model.predict(image[None], samples(size))
        assert torch.equal(alone.pred_sem_seg.data, result.pred_sem_seg.data)


@torch.no_grad()
def test_logits_on_request():
    model = build(test_cfg=dict(return_logits=True))
    inputs = torch.randn(1, 3, 64, 48)
    (result,) = model.predict(inputs, samples((33, 90)))
    logits = model.decode_head(model.backbone(inputs))
    expected = F.interpolate(logits, (33, 90), mode='bilinear')[0]
    torch.testing.assert_close(result.seg_logits.data, expected)
    assert torch.equal(result.pred_sem_seg.data[0], expected.argmax(0))


@torch.no_grad()
def test_flip_and_padding_are_undone():
    model = build()
    inputs = torch.randn(1, 3, 64, 48)
    logits = model.decode_head(model.backbone(inputs))[0]
    flip = dict(flip=True, flip_direction='horizontal')
    (result,) = model.predict(inputs, samples((64, 48), **flip))
    assert torch.equal(result.pred_sem_seg.data[0], logits.flip(-1).argmax(0))
    flip['flip_direction'] = 'vertical'
    (result,) = model.predict(inputs, samples((64, 48), **flip))
    assert torch.equal(result.pred_sem_seg.data[0], logits.flip(-2).argmax(0))
    (result,) = model.predict(inputs, samples((59, 42), padding_size=(1, 5, 2, 3)))
    inner = logits[:, 2:61, 1:43]
    assert torch.equal(result.pred_sem_seg.data[0], inner.argmax(0))


@torch.no_grad()
@pytest.mark.parametrize('size', [(64, 48), (80, 48), (160, 128), (144, 112)])
def test_slide_equals_mmseg(size):
    cfg = dict(mode='slide', crop_size=(64, 48), stride=(48, 32))
    model = build(test_cfg=cfg)
    host = build(type='mmseg.EncoderDecoder', test_cfg=cfg)
    inputs = torch.randn(2, 3, *size)
    results = model.predict(inputs, samples(size, size))
    expected = host.slide_inference(inputs, [dict(img_shape=size)] * 2)
    torch.testing.assert_close(
        model.slide_inference(inputs, []), expected, atol=1e-6, rtol=0
    )
    for result, logits in zip(results, expected, strict=True):
        assert torch.equal(result.pred_sem_seg.data[0], logits.argmax(0))
    (resized,) = model.predict(inputs[:1], samples((70, 50)))
    again = F.interpolate(expected[:1], (70, 50), mode='bilinear')[0]
    assert torch.equal(resized.pred_sem_seg.data[0], again.argmax(0))


@torch.no_grad()
def test_slide_on_one_window_equals_whole():
    slide = build(test_cfg=dict(mode='slide', crop_size=(64, 48), stride=(32, 24)))
    inputs = torch.randn(1, 3, 64, 48)
    (a,) = slide.predict(inputs, samples((64, 48)))
    (b,) = build().predict(inputs, samples((64, 48)))
    assert torch.equal(a.pred_sem_seg.data, b.pred_sem_seg.data)


def build_4k(**kwargs):
    """A window tokenizer, and logits of half the sides of the input."""
    cfg = copy.deepcopy(CONFIG)
    cfg['backbone'].update(use_tokenizer=True, img_size=(128, 64))
    cfg['decode_head'].update(
        deconv_out_channels=(8,) * 5, deconv_kernel_sizes=(4,) * 5
    )
    return build(**{**cfg, **kwargs})


@torch.no_grad()
@pytest.mark.parametrize('size', [(128, 64), (300, 200), (40, 30)])
def test_small_logits_equal_mmseg_and_are_not_enlarged_at_once(size, monkeypatch):
    model = build_4k()
    host = build_4k(type='mmseg.EncoderDecoder', test_cfg=dict(mode='whole'))
    host.load_state_dict(model.state_dict())
    inputs, meta = torch.randn(2, 3, 128, 64), dict(ori_shape=size)
    meta.update(img_shape=(128, 64), pad_shape=(128, 64))
    meta.update(flip=True, flip_direction='horizontal')

    def predict(model):
        batch = [SegDataSample(metainfo=meta) for _ in inputs]
        return [each.pred_sem_seg.data for each in model.predict(inputs, batch)]

    expected, planes = predict(host), []
    head = Sapiens2SegHead.predict_by_feat

    def counted(self, logits, metas):
        planes.append(logits.shape[1])
        return head(self, logits, metas)

    monkeypatch.setattr(Sapiens2SegHead, 'predict_by_feat', counted)
    for max_elements in (2**24, 0):
        planes.clear()
        monkeypatch.setattr(
            resize_and_argmax, '__defaults__', (False, max_elements, None)
        )
        for ours, theirs in zip(predict(model), expected, strict=True):
            assert torch.equal(ours, theirs)
        assert max(planes) == (5 if max_elements else 1)


@torch.no_grad()
@pytest.mark.parametrize('mode', ['whole', 'slide'])
def test_sides_that_do_not_fit_the_windows_are_padded_and_cut(mode):
    slides = dict(crop_size=(128, 128), stride=(64, 64)) if mode == 'slide' else {}
    model = build_4k(test_cfg=dict(mode=mode, **slides))
    inputs = torch.randn(1, 3, 100, 90)
    (result,) = model.predict(inputs)
    logits = model.decode_head(model.backbone(F.pad(inputs, (0, 38, 0, 28))))
    logits = F.interpolate(logits, (128, 128), mode='bilinear')[0, :, :100, :90]
    assert torch.equal(result.pred_sem_seg.data[0], logits.argmax(0))


@torch.no_grad()
def test_4k_slide_on_one_window_equals_whole_and_takes_any_picture(monkeypatch):
    cfg = dict(mode='slide', crop_size=(128, 64), stride=(96, 48))
    slide, inputs = build_4k(test_cfg=cfg), torch.randn(1, 3, 300, 217)
    window = inputs[..., :128, :64]
    made, enlarged = [], Sapiens2Segmentor._enlarged
    monkeypatch.setattr(
        Sapiens2Segmentor,
        '_enlarged',
        lambda *args: made.append(args[1].shape[1]) or enlarged(*args),
    )
    (a,), (b,) = slide.predict(window), build_4k().predict(window)
    assert made[:5] == [1] * 5  # of the window, one class after the other
    assert torch.equal(a.pred_sem_seg.data, b.pred_sem_seg.data)
    host = build_4k(type='mmseg.EncoderDecoder', test_cfg=cfg)
    expected = host.slide_inference(inputs, [dict(img_shape=(300, 217))])
    (result,) = slide.predict(inputs)
    assert torch.equal(result.pred_sem_seg.data[0], expected[0].argmax(0))


@torch.no_grad()
def test_without_data_samples_and_in_other_sizes():
    model = build()
    (result,) = model.predict(torch.randn(1, 3, 96, 64))
    assert result.pred_sem_seg.data.shape == (1, 96, 64)
    with torch.autocast('cpu', torch.bfloat16):
        (result,) = model.predict(torch.randn(1, 3, 64, 48))
    assert result.pred_sem_seg.data.dtype == torch.int64


def test_every_parameter_has_a_gradient():
    model = build().train()
    inputs = torch.randn(2, 3, 64, 48)
    logits = model(inputs, mode='tensor')
    assert logits.shape == (2, 5, 64, 48)
    nn.functional.cross_entropy(logits, torch.zeros(2, 64, 48).long()).backward()
    missing = [n for n, p in model.named_parameters() if p.grad is None]
    assert missing == []


def test_builds_on_the_meta_device():
    with torch.device('meta'):
        model = MODELS.build(copy.deepcopy(CONFIG))
    assert all(p.is_meta for p in model.parameters())


@pytest.mark.parametrize(
    'test_cfg, message',
    [
        (dict(mode='x'), "must have mode 'whole', or 'slide' .*'mode': 'x'"),
        (dict(mode='slide'), 'with crop_size and stride'),
        (dict(mode='slide', crop_size=(64,), stride=(32,)), r'\(height, width\)'),
        (
            dict(mode='slide', crop_size=(64, 48), stride=(65, 48)),
            r"0 < stride <= crop_size, got .*'stride': \(65, 48\)",
        ),
        (dict(mode='slide', crop_size=64, stride=32), "got .*'stride': 32"),
        (dict(mode='slide', crop_size=(64, 48), stride=None), "got .*'stride': None"),
    ],
)
def test_errors(test_cfg, message):
    with pytest.raises(ValueError, match=message):
        build(test_cfg=test_cfg)


def test_whole_mode_reads_no_window():
    unused = dict(mode='whole', crop_size=None, stride=32)
    assert build(test_cfg=unused).test_cfg == unused
