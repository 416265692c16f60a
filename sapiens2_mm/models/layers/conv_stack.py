"""The convolutions between a backbone's map and the predictor of a head.

A head owns its stacks under the official names, so that its parameters are called
``deconv_layers.{0,3,..}.weight``, ``conv_layers.{0,3,..}.{weight,bias}``,
``upsample_blocks.i.0.{weight,bias}``::

    self.deconv_layers = make_deconv_layers(in_channels, (1024, 768), (4, 4))
    self.conv_layers = make_conv_layers(768, (512, 512, 256), (1, 1, 1))

InstanceNorm has neither parameters nor running statistics: it always uses the
statistics of the image at hand, also at test time.
"""

from collections.abc import Callable, Iterator, Sequence

from torch import nn

# kernel size -> (padding, output_padding) that double the size at stride 2.
_DECONV_PADDING = {4: (1, 0), 3: (1, 1), 2: (0, 0)}


def make_deconv_layers(
    in_channels: int, out_channels: Sequence[int], kernel_sizes: Sequence[int]
) -> nn.Sequential:
    """Stages of transposed conv (x2, no bias), InstanceNorm, SiLU.

    Args:
        in_channels: channels of the map that comes in.
        out_channels: channels after each stage; may be empty.
        kernel_sizes: 4, 3 or 2, one per stage.

    Returns:
        (B, in_channels, h, w) -> (B, out_channels[-1], h * 2^n, w * 2^n).

    Raises:
        ValueError: if the lengths differ or a kernel size is not supported.
    """
    layers: list[nn.Module] = []
    stages = _stages('deconv', in_channels, out_channels, kernel_sizes)
    for channels_in, channels, kernel_size in stages:
        if kernel_size not in _DECONV_PADDING:
            raise ValueError(
                f'deconv_kernel_sizes must be 4, 3 or 2, got {kernel_size}'
            )
        padding, output_padding = _DECONV_PADDING[kernel_size]
        deconv = nn.ConvTranspose2d(
            channels_in,
            channels,
            kernel_size,
            stride=2,
            padding=padding,
            output_padding=output_padding,
            bias=False,
        )
        layers += [deconv, nn.InstanceNorm2d(channels), nn.SiLU(inplace=True)]
    return nn.Sequential(*layers)


def make_conv_layers(
    in_channels: int,
    out_channels: Sequence[int],
    kernel_sizes: Sequence[int],
    norm_layer: Callable[[int], nn.Module] = nn.InstanceNorm2d,
    stride: int = 1,
) -> nn.Sequential:
    """Stages of conv (with bias), norm, SiLU.

    Args:
        in_channels: channels of the map that comes in.
        out_channels: channels after each stage; may be empty.
        kernel_sizes: odd, one per stage.
        norm_layer: makes a norm from a number of channels.
        stride: of each conv; 1 keeps the size.

    Returns:
        (B, in_channels, h, w) -> (B, out_channels[-1], h, w) at stride 1.

    Raises:
        ValueError: if the lengths differ or a kernel size is even.
    """
    layers: list[nn.Module] = []
    stages = _stages('conv', in_channels, out_channels, kernel_sizes)
    for channels_in, channels, kernel_size in stages:
        if kernel_size % 2 == 0:
            raise ValueError(f'conv_kernel_sizes must be odd, got {kernel_size}')
        conv = nn.Conv2d(channels_in, channels, kernel_size, stride, kernel_size // 2)
        layers += [conv, norm_layer(channels), nn.SiLU(inplace=True)]
    return nn.Sequential(*layers)


def make_upsample_blocks(
    in_channels: int,
    out_channels: Sequence[int],
    norm_layer: Callable[[int], nn.Module] = nn.InstanceNorm2d,
) -> nn.Sequential:
    """Blocks of 3x3 conv, pixel shuffle (x2), norm, SiLU.

    Args:
        in_channels: channels of the map that comes in.
        out_channels: channels after each block; may be empty.
        norm_layer: makes a norm from a number of channels.

    Returns:
        (B, in_channels, h, w) -> (B, out_channels[-1], h * 2^n, w * 2^n).
    """
    blocks = nn.Sequential()
    for channels in out_channels:
        conv = nn.Conv2d(in_channels, 4 * channels, 3, padding=1)
        shuffle, norm = nn.PixelShuffle(2), norm_layer(channels)
        blocks.append(nn.Sequential(conv, shuffle, norm, nn.SiLU(inplace=True)))
        in_channels = channels
    return blocks


def _stages(
    kind: str,
    in_channels: int,
    out_channels: Sequence[int],
    kernel_sizes: Sequence[int],
) -> Iterator[tuple[int, int, int]]:
    """Channels in, channels out and kernel size of each stage."""
    if len(out_channels) != len(kernel_sizes):
        raise ValueError(
            f'{kind}_out_channels and {kind}_kernel_sizes need one entry per stage, '
            f'got {list(out_channels)} and {list(kernel_sizes)}'
        )
    return zip((in_channels, *out_channels), out_channels, kernel_sizes, strict=False)
