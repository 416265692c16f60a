import pytest
import torch

from sapiens2_mm.models.layers.conv_stack import (
    make_conv_layers,
    make_deconv_layers,
    make_upsample_blocks,
)


def test_official_parameter_names():
    deconv = make_deconv_layers(8, (6, 4), (4, 4))
    conv = make_conv_layers(4, (3, 2), (1, 1))
    assert list(deconv.state_dict()) == ['0.weight', '3.weight']
    assert list(conv.state_dict()) == ['0.weight', '0.bias', '3.weight', '3.bias']
    assert deconv[0].weight.shape == (8, 6, 4, 4)


@pytest.mark.parametrize('kernel_size', [2, 3, 4])
def test_each_deconv_kernel_doubles_the_size(kernel_size):
    x = torch.randn(2, 3, 5, 4)
    assert make_deconv_layers(3, (4, 2), (kernel_size,) * 2)(x).shape == (2, 2, 20, 16)


@pytest.mark.parametrize('kernel_size', [1, 3])
def test_conv_keeps_the_size_and_normalizes_each_image(kernel_size):
    x = torch.randn(2, 3, 6, 5)
    layers = make_conv_layers(3, (4,), (kernel_size,))
    normed = layers[:2](x)
    assert normed.shape == (2, 4, 6, 5)
    torch.testing.assert_close(
        normed.mean((2, 3)), torch.zeros(2, 4), atol=1e-6, rtol=0
    )
    # The same in evaluation: no running statistics.
    assert torch.equal(layers.eval()(x), layers.train()(x))


def test_no_stage_is_the_identity():
    x = torch.randn(1, 3, 2, 2)
    assert make_conv_layers(3, (), ())(x) is x


def test_upsample_blocks_double_the_size_under_the_official_names():
    blocks = make_upsample_blocks(3, (4, 2))
    names = ['0.0.weight', '0.0.bias', '1.0.weight', '1.0.bias']
    assert list(blocks.state_dict()) == names
    assert blocks[1][0].weight.shape == (8, 4, 3, 3)
    x = torch.randn(1, 3, 5, 4)
    assert blocks(x).shape == (1, 2, 20, 16)
    # four channels of a pixel become 2x2 pixels, row by row
    conv, shuffle = blocks[0][:2]
    shuffled = shuffle(conv(x))
    assert torch.equal(shuffled[0, 0, :2, :2].flatten(), conv(x)[0, :4, 0, 0])


def test_stride_and_norm_of_conv_layers():
    layers = make_conv_layers(3, (4,), (1,), torch.nn.BatchNorm2d, stride=2)
    assert isinstance(layers[1], torch.nn.BatchNorm2d)
    x = torch.randn(2, 3, 5, 4)
    conv = layers[0]
    expected = torch.einsum('oi,bihw->bohw', conv.weight[:, :, 0, 0], x[..., ::2, ::2])
    torch.testing.assert_close(conv(x), expected + conv.bias[:, None, None])


def test_errors():
    with pytest.raises(ValueError, match=r'deconv_out_channels.*\[8, 4\] and \[4\]'):
        make_deconv_layers(8, (8, 4), (4,))
    with pytest.raises(ValueError, match=r'deconv_kernel_sizes must be 4, 3 or 2.*5'):
        make_deconv_layers(8, (8,), (5,))
    with pytest.raises(ValueError, match='conv_kernel_sizes must be odd, got 2'):
        make_conv_layers(8, (8,), (2,))
