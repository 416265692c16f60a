"""Pretraining of a Sapiens2 backbone."""

import math
from collections.abc import Callable

import numpy as np
import torch
from mmpretrain.models.selfsup import BaseSelfSupervisor
from mmpretrain.structures import DataSample
from torch import Tensor

from sapiens2_mm.registry import MODELS, TASK_UTILS

from ..losses.contrast import target_entropies
from ..losses.reconstruction import patch_statistics, unpatchify
from .counter import read_count, set_count
from .ema_teacher import EMATeacher
from .masking import TokenMask


@MODELS.register_module()
class Sapiens2Pretrain(BaseSelfSupervisor):
    """Masked reconstruction, self-distillation between views, and KoLeo.

    Inputs are a list of views: first the global ones, all of one size, then the local
    ones, all of one size. The student sees the visible patches of the global views and
    the whole local views; masked tokens are dropped before its first block, and one
    pass serves all losses. Global and local views share one batch if they have equally
    many tokens, as with the default sizes. The teacher sees the whole global views.

    Without ``head`` only the reconstruction is trained: there is no teacher, and local
    views are not used.

    ``sapiens2_mm.TeacherUpdateHook`` must call :meth:`after_step` once per optimizer
    step; teacher, center and the teacher's temperature move there and nowhere else.

    Args:
        backbone: config of ``Sapiens2``, last block in ``out_indices``.
        neck: config of ``MAEDecoder``; ``in_channels`` is filled in.
        mask_generator: config of ``BlockPatchMask``.
        reconstruction_loss: config of ``PatchReconstructionLoss``.
        head: config of ``PrototypeHead``; ``in_channels`` is filled in.
        contrast_loss: config of ``ViewContrastLoss``; needed with ``head``.
        koleo_loss: config of ``KoLeoLoss``, or None.
        centering: config of ``EMACentering`` or ``SinkhornCentering``; needed with
            ``head``, ``num_prototypes`` is filled in.
        teacher_momentum: ``momentum`` of ``EMATeacher``.
        teacher_momentum_iters: ``momentum_iters`` of ``EMATeacher``.
        frozen_prototype_iters: number of optimizer steps, from the start, in which the
            prototypes get no gradient (weight decay still acts). Targets cannot turn
            uniform by prototypes that shrink before the class tokens mean anything.
        num_global_views: G.
        num_local_views: number of views after the first G.
        data_preprocessor: of mmpretrain.
        init_cfg: mmengine's.

    Raises:
        ValueError: if a part is missing or has no use.

    Source: Sapiens2 (arXiv 2604.21681) sections 3.2 and A.1.
    """

    def __init__(
        self,
        backbone: dict,
        neck: dict,
        mask_generator: dict,
        reconstruction_loss: dict,
        head: dict | None = None,
        contrast_loss: dict | None = None,
        koleo_loss: dict | None = None,
        centering: dict | None = None,
        teacher_momentum: float = 0.992,
        teacher_momentum_iters: int | None = None,
        frozen_prototype_iters: int = 0,
        num_global_views: int = 2,
        num_local_views: int = 4,
        data_preprocessor: dict | None = None,
        init_cfg: dict | None = None,
    ) -> None:
        backbone = MODELS.build(backbone)
        channels = dict(in_channels=backbone.embed_dims)
        neck = MODELS.build(neck, default_args=channels)
        if head is not None:
            head = MODELS.build(head, default_args=channels)
        # mmpretrain's own default is a bare name, which its scope alone can find.
        data_preprocessor = {
            'type': 'mmpretrain.SelfSupDataPreprocessor',
            'non_blocking': True,
            **(data_preprocessor or {}),
        }
        super().__init__(
            backbone,
            neck,
            head,
            data_preprocessor=MODELS.build(data_preprocessor),
            init_cfg=init_cfg,
        )
        given = [part is not None for part in (head, contrast_loss, centering)]
        if any(given) != all(given) or (koleo_loss and not all(given)):
            raise ValueError(
                'Sapiens2Pretrain: head, contrast_loss and centering belong together '
                'and koleo_loss needs them; give all three or set them to None'
            )
        if backbone.num_layers - 1 not in backbone.out_indices:
            raise ValueError(
                f'Sapiens2Pretrain: out_indices {backbone.out_indices} of the backbone '
                'must contain the last block; use -1'
            )
        self.frozen_prototype_iters = frozen_prototype_iters
        self.num_global_views = num_global_views
        self.num_local_views = num_local_views
        self.mask_generator = TASK_UTILS.build(mask_generator)
        self.reconstruction_loss = MODELS.build(reconstruction_loss)
        self.contrast_loss = self.koleo_loss = self.centering = self.teacher = None
        if head is not None:
            prototypes = dict(num_prototypes=head.num_prototypes)
            self.contrast_loss = MODELS.build(contrast_loss)
            self.centering = MODELS.build(centering, default_args=prototypes)
            self.teacher = EMATeacher(
                backbone, head, teacher_momentum, teacher_momentum_iters
            )
        if koleo_loss is not None:
            self.koleo_loss = MODELS.build(koleo_loss)
        # Optimizer steps done, and samples seen by this process: they decide the
        # temperature and the masks, so a resumed run continues with the same ones.
        self.register_buffer('iteration', torch.zeros((), dtype=torch.long))
        self.register_buffer('num_samples', torch.zeros((), dtype=torch.long))
        self.register_load_state_dict_pre_hook(_teacher_from_student)

    def init_weights(self) -> None:
        """Fill the student, then copy it to the teacher."""
        super().init_weights()
        if self.teacher is not None:
            self.teacher.copy_from(self.backbone, self.head)

    def share_between_processes(
        self,
        rank: int,
        all_reduce: Callable[[Tensor, str], Tensor],
        gather: Callable[[Tensor], tuple[Tensor, int]] | None = None,
    ) -> None:
        """Make this model one of several that train together.

        Args:
            rank: number of this process; gives it masks of its own.
            all_reduce: see ``Centering``.
            gather: see ``KoLeoLoss``; None keeps its neighbors within the process.
        """
        self.mask_generator.stream = rank
        if self.centering is not None:
            self.centering.all_reduce = all_reduce
        if self.koleo_loss is not None:
            self.koleo_loss.gather = gather

    def restart(self) -> None:
        """Begin the schedules and masks of a new run with the weights there are."""
        set_count(self.iteration, 0)
        set_count(self.num_samples, 0)

    @torch.no_grad()
    def after_step(self) -> None:
        """Move teacher and center; to be called once after each optimizer step."""
        iteration = read_count(self.iteration)
        if self.teacher is not None:
            self.teacher.update(self.backbone, self.head, iteration)
            self.centering.update()
        set_count(self.iteration, iteration + 1)

    def loss(
        self, inputs: list[Tensor], data_samples: list[DataSample] | None = None
    ) -> dict[str, Tensor]:
        """Losses of a batch, without waiting for its device.

        Args:
            inputs: one (B, 3, H, W) tensor per view.
            data_samples: with ``ids_keep`` of ``DrawTokenMasks``; without, the masks
                are drawn here, which takes half a millisecond per image or more.

        Returns:
            Weighted losses ``loss_mae``, ``loss_contrast`` and ``loss_koleo``, and for
            the log alone, of this process's batch: ``teacher_entropy`` (nats),
            ``teacher_kl_uniform`` (its distance to log K), ``teacher_entropy_of_mean``
            (of the mean target), ``teacher_mutual_information`` (the second entropy
            minus the first) and ``cls_std`` (over the batch, mean over channels).

        Raises:
            ValueError: if the number of views or their sizes do not fit.
        """
        num_globals = self.num_global_views
        sizes = [tuple(view.shape[-2:]) for view in inputs]
        kinds = {*sizes[:num_globals]}, {*sizes[num_globals:]}
        if len(sizes) != num_globals + self.num_local_views or max(map(len, kinds)) > 1:
            raise ValueError(
                f'Sapiens2Pretrain: MultiViewCrop must give {num_globals} global and '
                f'{self.num_local_views} local views of one size each, got {sizes}'
            )
        batch_size = len(inputs[0])
        globals_ = torch.cat(inputs[:num_globals])  # (G*B, 3, H, W)
        locals_ = None
        if self.head is not None and self.num_local_views:
            locals_ = torch.cat(inputs[num_globals:])
        grid = self.token_grid(globals_)
        mask = self._token_mask(data_samples, batch_size, grid, globals_.device)
        encoded, cls_token = self.encode_views(globals_, mask, locals_)
        pred = self.neck(encoded, mask, grid, cls_token[: len(globals_)])
        losses = dict(
            loss_mae=self.reconstruction_loss(pred, globals_, mask.mask, grid)
        )
        if self.head is not None:
            losses.update(self._contrast(globals_, cls_token, batch_size))
        return losses

    def _token_mask(
        self,
        data_samples: list[DataSample] | None,
        batch_size: int,
        grid: tuple[int, int],
        device: torch.device,
    ) -> TokenMask:
        first = read_count(self.num_samples)
        if self.training:
            set_count(self.num_samples, first + batch_size)
        if data_samples and 'ids_keep' in data_samples[0]:
            ids_keep = np.stack([sample.ids_keep for sample in data_samples], 1)
            return TokenMask.from_ids_keep(ids_keep, grid[0] * grid[1], device)
        return self.mask_generator(
            self.num_global_views, batch_size, grid, first, device
        )

    def token_grid(self, images: Tensor) -> tuple[int, int]:
        """Rows and columns of tokens of (B, 3, H, W) images."""
        side = self.backbone.stride
        return images.shape[2] // side, images.shape[3] // side

    def encode_views(
        self, globals_: Tensor, mask: TokenMask, locals_: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Run the student once on everything it sees, or twice if sizes differ.

        Args:
            globals_: (G*B, 3, H, W).
            mask: of the global views.
            locals_: (L*B, 3, H', W') or None.

        Returns:
            Visible patch tokens (G*B, n, C) of the global views and class tokens
            ((G+L)*B, C) of all views, both after the final norm.
        """
        prefix = self.backbone.num_prefix_tokens
        tokens, rope, _ = self.backbone.embed(globals_, mask.ids_keep)
        if locals_ is None:
            tokens = self.backbone.encode(tokens, rope)[-1]
            return tokens[:, prefix:], tokens[:, 0]
        tokens_l, rope_l, _ = self.backbone.embed(locals_)
        if tokens.shape[1] == tokens_l.shape[1]:
            rope = tuple(
                torch.cat((table, table_l.expand(len(tokens_l), *table.shape[1:])))
                for table, table_l in zip(rope, rope_l, strict=True)
            )
            tokens = torch.cat((tokens, tokens_l))
            tokens = self.backbone.encode(tokens, rope)[-1]
            return tokens[: len(globals_), prefix:], tokens[:, 0]
        tokens = self.backbone.encode(tokens, rope)[-1]
        tokens_l = self.backbone.encode(tokens_l, rope_l)[-1]
        return tokens[:, prefix:], torch.cat((tokens[:, 0], tokens_l[:, 0]))

    def _contrast(
        self, globals_: Tensor, cls_token: Tensor, batch_size: int
    ) -> dict[str, Tensor]:
        iteration = read_count(self.iteration)
        temperature = self.contrast_loss.teacher_temperature_at(iteration)
        views = (-1, batch_size)  # of the first dimension, to (V, B)
        targets = self.centering(
            self.teacher(globals_).unflatten(0, views), temperature
        )
        frozen = iteration < self.frozen_prototype_iters
        logits = self.head(cls_token, frozen).unflatten(0, views)
        losses = dict(loss_contrast=self.contrast_loss(logits, targets))
        cls_token = cls_token.unflatten(0, views)[: self.num_global_views]
        if self.koleo_loss is not None:
            losses['loss_koleo'] = self.koleo_loss(cls_token)
        with torch.no_grad():
            entropy, of_mean = target_entropies(targets)
            losses['teacher_entropy'] = entropy
            losses['teacher_kl_uniform'] = math.log(self.head.num_prototypes) - entropy
            losses['teacher_entropy_of_mean'] = of_mean
            losses['teacher_mutual_information'] = of_mean - entropy
            losses['cls_std'] = cls_token.float().std(1, correction=0).mean()
        return losses

    @torch.no_grad()
    def reconstruct(self, images: Tensor, mask: TokenMask) -> tuple[Tensor, Tensor]:
        """Pictures of what the decoder fills in.

        The mean and contrast of each patch, which are not predicted, are those of the
        target.

        Args:
            images: (B, 3, H, W) normalized.
            mask: of the images.

        Returns:
            The masked images, with 0 in masked patches, and the images with masked
            patches reconstructed; both (B, 3, h, w) at the size of the target.
        """
        grid = self.token_grid(images)
        tokens, cls_token = self.encode_views(images, mask, None)
        pred = self.neck(tokens, mask, grid, cls_token).float()
        patches = self.reconstruction_loss.raw_patches(images, grid)
        mean, std = patch_statistics(patches)
        size = round(images.shape[2] * self.reconstruction_loss.target_scale) // grid[0]
        masked = mask.mask[:, :, None]
        hidden = patches.masked_fill(masked, 0)
        filled = torch.where(masked, pred * std + mean, patches)
        return unpatchify(hidden, grid, size), unpatchify(filled, grid, size)


def _teacher_from_student(
    model: Sapiens2Pretrain, state_dict: dict, prefix: str, *_: object
) -> None:
    """Weights without a teacher start one as a copy of the student."""
    if model.teacher is None or any(
        key.startswith(f'{prefix}teacher.') for key in state_dict
    ):
        return
    for part in ('backbone.', 'head.'):
        for key in [k for k in state_dict if k.startswith(prefix + part)]:
            name = key[len(prefix) :]
            state_dict[f'{prefix}teacher.{name}'] = state_dict[key]
