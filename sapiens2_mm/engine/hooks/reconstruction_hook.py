"""Pictures of what a pretrained model fills in."""

import numpy as np
import torch
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.runner import Runner
from torch import Tensor

from sapiens2_mm.models.selfsup.masking import BlockPatchMask, TokenMask
from sapiens2_mm.registry import HOOKS


@HOOKS.register_module()
class ReconstructionHook(Hook):
    """Draws reconstructions of the first global view of a training batch.

    One row per image: the view, the view under a block-wise mask and its
    reconstruction, the same under a patch-wise mask. The rows go to the visualizer as
    ``reconstruction`` (``vis_data/vis_image`` of the log folder for the local
    backend).

    Args:
        interval: iterations between pictures; 0 draws none.
        num_images: rows of a picture.
    """

    priority = 'NORMAL'

    def __init__(self, interval: int = 1000, num_images: int = 4) -> None:
        self.interval = interval
        self.num_images = num_images

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: dict | None = None,
        outputs: dict | None = None,
    ) -> None:
        if not self.every_n_train_iters(runner, self.interval):
            return
        picture = draw_reconstructions(runner.model, data_batch, self.num_images)
        runner.visualizer.add_image('reconstruction', picture, step=runner.iter + 1)


@torch.no_grad()
def draw_reconstructions(
    model: torch.nn.Module, data_batch: dict, num_images: int
) -> np.ndarray:
    """The picture of ``ReconstructionHook``: (rows * H, 5 * W, 3) uint8 RGB."""
    if is_model_wrapper(model):
        model = model.module
    was_training = model.training
    model.eval()
    preprocessor = model.data_preprocessor
    views = preprocessor(data_batch, False)['inputs']
    images = views[0][:num_images]
    columns = [model.reconstruction_loss.resize(images)]
    for block in (True, False):
        hidden, filled = model.reconstruct(images, fixed_masks(model, images, block))
        columns += [hidden, filled]
    model.train(was_training)
    rows = torch.cat(columns, dim=3)  # (num_images, 3, H, 5 * W)
    pixels = rows * preprocessor.std + preprocessor.mean
    pixels = pixels.round().clamp(0, 255).byte().permute(0, 2, 3, 1)
    return np.ascontiguousarray(pixels.flatten(0, 1).cpu().numpy())


def fixed_masks(model: torch.nn.Module, images: Tensor, block: bool) -> TokenMask:
    """The same masks at every call, all block-wise or all patch-wise."""
    own = model.mask_generator
    generator = BlockPatchMask(
        own.mask_ratio,
        float(block),
        own.min_block,
        own.max_block_ratio,
        own.max_aspect,
    )
    grid = model.token_grid(images)
    return generator(1, len(images), grid, device=images.device)
