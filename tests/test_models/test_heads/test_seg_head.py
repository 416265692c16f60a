import pytest
import torch
from safetensors.torch import load_file
from torch import nn

pytest.importorskip('mmseg')

from mmengine.structures import PixelData
from mmseg.structures import SegDataSample

from sapiens2_mm.models import Sapiens2SegHead
from sapiens2_mm.models.losses.seg import dice_loss, weighted_cross_entropy

TINY = dict(deconv_out_channels=(8,) * 4, conv_out_channels=(8, 8))


def make_head(num_classes=4, **kwargs):
    torch.manual_seed(0)
    head = Sapiens2SegHead(6, num_classes, **{**TINY, **kwargs})
    head.init_weights()
    return head


def make_samples(labels):
    return [SegDataSample(gt_sem_seg=PixelData(data=label[None])) for label in labels]


def test_equals_the_released_head(data_dir):
    case = load_file(data_dir / 'head_seg.safetensors')
    head = Sapiens2SegHead(
        64, 29, deconv_out_channels=(32, 24, 16, 16), conv_out_channels=(16, 16)
    )
    prefix = 'state_dict.'
    weights = {
        k.removeprefix(prefix): v for k, v in case.items() if k.startswith(prefix)
    }
    head.load_state_dict(weights, strict=True)
    out = head((case['feat'],))
    torch.testing.assert_close(out, case['out'], atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    'in_channels, millions',
    [(1024, 11.15), (1280, 13.25), (1536, 15.35), (2432, 22.69)],
)
def test_released_sizes_on_the_meta_device(in_channels, millions):
    with torch.device('meta'):
        head = Sapiens2SegHead(in_channels)
    count = sum(p.numel() for p in head.parameters())
    assert count / 1e6 == pytest.approx(millions, abs=0.01)
    assert head.num_classes == 29


def test_init_fills_what_was_made_on_the_meta_device():
    with torch.device('meta'):
        head = Sapiens2SegHead(6, 4, **TINY)
    head.to_empty(device='cpu')
    for parameter in head.parameters():
        nn.init.constant_(parameter, float('nan'))
    head.init_weights()
    assert all(p.isfinite().all() for p in head.parameters())


def test_init_follows_the_released_rule():
    head = make_head(deconv_out_channels=(256,), deconv_kernel_sizes=(4,))
    conv = head.conv_layers[0]
    assert conv.weight.std().item() == pytest.approx((2 / 8) ** 0.5, rel=0.1)
    assert not conv.bias.any()
    assert not head.conv_seg.bias.any()
    bound = 1 / (256 * 16) ** 0.5  # PyTorch's rule for transposed convolutions
    assert head.deconv_layers[0].weight.abs().max().item() <= bound


def test_uses_the_last_map_and_upsamples_by_16():
    head = make_head()
    feat = torch.randn(2, 6, 4, 3)
    out = head((torch.randn(2, 5, 4, 3), feat))
    assert out.shape == (2, 4, 64, 48)
    assert torch.equal(out, head((feat,)))


@pytest.mark.parametrize('size', [(64, 48), (32, 24)])
def test_losses_accuracy_and_gradients(size):
    head = make_head()
    feat = (torch.randn(2, 6, 4, 3),)
    labels = torch.randint(0, 4, (2, *size))
    labels[0, :5] = 255
    losses = head.loss(feat, make_samples(labels), {})
    assert set(losses) == {'loss_ce', 'loss_dice', 'acc_seg'}
    logits = nn.functional.interpolate(head(feat), size, mode='bilinear')
    torch.testing.assert_close(
        losses['loss_ce'], weighted_cross_entropy(logits, labels)
    )
    torch.testing.assert_close(losses['loss_dice'], dice_loss(logits, labels))
    valid = labels != 255
    right = (logits.argmax(1) == labels)[valid].float().mean() * 100
    torch.testing.assert_close(losses['acc_seg'], right)
    (losses['loss_ce'] + losses['loss_dice']).backward()
    assert all(p.grad is not None for p in head.parameters())


def test_losses_of_one_name_are_added():
    loss = dict(type='sapiens2_mm.Sapiens2DiceLoss', loss_name='loss_x')
    one, two = make_head(loss_decode=loss), make_head(loss_decode=[loss, loss])
    feat, labels = (torch.randn(1, 6, 4, 3),), torch.randint(0, 4, (1, 64, 48))
    single = one.loss(feat, make_samples(labels), {})['loss_x']
    double = two.loss(feat, make_samples(labels), {})['loss_x']
    torch.testing.assert_close(double, 2 * single)


@pytest.mark.parametrize('fill', [255, 2])
@pytest.mark.parametrize('amp', [False, True])
def test_ignored_or_one_class_crop_is_finite(fill, amp):
    head = make_head()
    labels = torch.full((2, 64, 48), fill)
    with torch.autocast('cpu', torch.bfloat16, enabled=amp):
        losses = head.loss((torch.randn(2, 6, 4, 3),), make_samples(labels), {})
    total = losses['loss_ce'] + losses['loss_dice']
    total.backward()
    assert total.dtype == torch.float32
    assert all(p.grad.isfinite().all() for p in head.parameters())
    if fill == 255:
        assert total.item() == 0
        assert losses['acc_seg'].item() == 0


def test_prediction_has_the_size_of_the_input():
    head = make_head()
    feat = (torch.randn(1, 6, 4, 3),)
    same = head.predict(feat, [dict(img_shape=(64, 48))], {})
    assert torch.equal(same, head(feat))
    padded = head.predict(feat, [dict(img_shape=(60, 40), pad_shape=(128, 96))], {})
    assert padded.shape == (1, 4, 128, 96)
    window = head.predict(
        feat, [dict(img_shape=torch.Size((32, 24)), pad_shape=(99, 99))], {}
    )
    assert window.shape == (1, 4, 32, 24)


def test_errors():
    with pytest.raises(ValueError, match='must be >= 2, got 1'):
        Sapiens2SegHead(6, 1)
    with pytest.raises(ValueError, match='one entry per stage'):
        Sapiens2SegHead(6, 4, deconv_out_channels=(8,))
    loss = dict(type='sapiens2_mm.WeightedCrossEntropyLoss', class_weight=[1, 2, 3])
    with pytest.raises(ValueError, match=r'3 class weights, .*num_classes=4'):
        Sapiens2SegHead(6, 4, loss_decode=loss)


def test_classes_of_metainfo_and_head():
    head = Sapiens2SegHead(6, 2, ignore_index=255)
    head.check_metainfo({})
    head.check_metainfo(dict(classes='ab', palette=[(0, 0, 0)] * 19))
    head.check_metainfo(dict(classes='ab', palette=[(0, 0, 0)] * 2, ignore_index=255))
    for meta, wrong in (
        (dict(classes='abc'), '3 classes'),
        (dict(classes='ab', palette=[(0, 0, 0)]), '1 colors'),
        (dict(ignore_index=254), 'ignored label 254'),
    ):
        message = f'have {wrong}, the head has num_classes=2 and ignore_index=255'
        with pytest.raises(ValueError, match=message):
            head.check_metainfo(meta)
