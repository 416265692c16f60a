"""Root-mean-square normalization."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

RMS_NORM_EPS = 1e-6


class RMSNorm(nn.RMSNorm):
    """torch's RMSNorm over the last dimension with the epsilon of Sapiens2.

    Args:
        dims: size of the normalized dimension.
        eps: added to the mean square under the root.
    """

    def __init__(self, dims: int, eps: float = RMS_NORM_EPS) -> None:
        super().__init__(dims, eps=eps)

    def forward(self, x: Tensor) -> Tensor:
        # Under autocast x may be half precision; torch fuses equal dtypes only.
        weight = self.weight.to(x.dtype)
        if torch.jit.is_tracing() and torch.onnx.is_in_onnx_export():
            # The exporter that traces (dynamo=False) does not know the operator.
            mean = x.float().square().mean(-1, keepdim=True)
            return (x * (mean + self.eps).rsqrt()).to(x.dtype) * weight
        return F.rms_norm(x, self.normalized_shape, weight, self.eps)


class ChannelRMSNorm(nn.Module):
    """RMSNorm over the channels of each pixel; (B, C, H, W) both ways."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = RMSNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
