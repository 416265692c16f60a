"""Image to patch tokens."""

from torch import Tensor, nn


class PatchEmbed(nn.Module):
    """One convolution whose stride is its kernel size.

    Args:
        in_channels: image channels.
        embed_dims: C.
        patch_size: side of a patch in pixels.
    """

    def __init__(self, in_channels: int, embed_dims: int, patch_size: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.projection = nn.Conv2d(
            in_channels, embed_dims, kernel_size=patch_size, stride=patch_size
        )

    def forward(self, x: Tensor) -> tuple[Tensor, tuple[int, int]]:
        """Embed (B, in_channels, H, W), H and W multiples of the patch size.

        Images follow weights of half precision; hosts normalize in float32.

        Returns:
            (B, h*w, C) tokens, row by row, and the grid (h, w).
        """
        x = self.projection(x.to(self.projection.weight.dtype))
        return x.flatten(2).transpose(1, 2), tuple(x.shape[2:])
