import pytest
import torch
import torch.nn.functional as F

from sapiens2_mm.models.segmentors.resize_argmax import resize_and_argmax


@pytest.mark.parametrize('size', [(64, 48), (33, 90), (500, 375), (128, 96), (1, 1)])
@pytest.mark.parametrize('align_corners', [False, True])
@pytest.mark.parametrize('max_elements', [0, 2**24])
def test_equals_argmax_of_resized_logits(size, align_corners, max_elements):
    torch.manual_seed(0)
    logits = torch.randn(29, 128, 96)
    whole = F.interpolate(
        logits[None], size, mode='bilinear', align_corners=align_corners
    )[0].argmax(0)
    labels = resize_and_argmax(logits, size, align_corners, max_elements)
    assert labels.dtype == torch.int64
    if size[0] >= 128 or max_elements:  # PyTorch rounds small results differently
        assert torch.equal(labels, whole)
    else:
        assert (labels != whole).float().mean() < 1e-3


def test_more_classes_than_a_byte_holds():
    logits = torch.zeros(300, 4, 4)
    logits[299, :2] = 1
    labels = resize_and_argmax(logits, (8, 8), max_elements=0)
    assert torch.equal(labels[::7, 0], torch.tensor([299, 0]))


def test_first_class_wins_a_tie():
    logits = torch.zeros(3, 4, 4)
    logits[1:, 2:] = 1
    expected = torch.tensor([0, 0, 1, 1])[:, None].expand(4, 4)
    assert torch.equal(resize_and_argmax(logits, (4, 4)), expected)
    assert torch.equal(
        resize_and_argmax(logits, (8, 4), max_elements=0)[::7],
        torch.tensor([[0] * 4, [1] * 4]),
    )


def test_half_precision_logits_are_compared_in_float32():
    logits = torch.randn(3, 8, 6).bfloat16()
    expected = F.interpolate(logits[None].float(), (20, 15), mode='bilinear')[0]
    assert torch.equal(resize_and_argmax(logits, (20, 15)), expected.argmax(0))
