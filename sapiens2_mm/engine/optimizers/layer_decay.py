"""Layer-wise learning rate decay for any model with a layered backbone."""

from math import inf
from typing import Any

from mmengine.logging import MMLogger
from mmengine.optim import OptimWrapper
from torch import nn

from sapiens2_mm.registry import (
    OPTIM_WRAPPER_CONSTRUCTORS,
    OPTIM_WRAPPERS,
    OPTIMIZERS,
)

_PARAMWISE_KEYS = ('layer_decay_rate', 'no_decay_keys', 'custom_keys')


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class LayerDecayOptimWrapperConstructor:
    """Builds an optimizer whose learning rate falls towards the input.

    The rate of a backbone parameter at depth ``id`` is multiplied by
    ``layer_decay_rate ** (L + 1 - id)``: patch embedding and tokens have id 0, block
    ``n`` has id ``n + 1``, everything else (final norm, neck, head) ``L + 1``. The
    depths come from the backbone's own ``get_layer_depth(name, prefix)``, the
    convention of mmpretrain, so models of mmpose, mmseg and mmpretrain are served
    alike. Parameters with one dimension, biases, and names that contain one of
    ``no_decay_keys`` have no weight decay; class and storage tokens do decay.
    Frozen parameters are left out.

    Args:
        optim_wrapper_cfg: config of the optimizer wrapper, with ``optimizer``.
        paramwise_cfg: ``layer_decay_rate`` (default 1.0), ``no_decay_keys`` (default
            ``('pos_embed',)``) and ``custom_keys``, a dict from a part of a
            parameter's name to ``dict(lr_mult=..., decay_mult=...)``; the longest
            matching part counts.

    Raises:
        ValueError: if ``paramwise_cfg`` has an unknown key, if a rate is not in (0, 1]
            or a factor negative, if no parameter is trainable, or if a decay rate is
            given and no module of the model has ``get_layer_depth``.

    Source: Sapiens2 (arXiv 2604.21681), post-training optimizer of the released
    configs.
    """

    def __init__(
        self, optim_wrapper_cfg: dict, paramwise_cfg: dict | None = None
    ) -> None:
        self.optim_wrapper_cfg = dict(optim_wrapper_cfg)
        self.optimizer_cfg = dict(self.optim_wrapper_cfg.pop('optimizer'))
        paramwise = dict(paramwise_cfg or {})
        unknown = sorted(set(paramwise) - set(_PARAMWISE_KEYS))
        if unknown:
            raise ValueError(
                f'{type(self).__name__}: paramwise_cfg has unknown keys {unknown}; '
                f'known are {list(_PARAMWISE_KEYS)}'
            )
        self.layer_decay_rate = paramwise.get('layer_decay_rate', 1.0)
        self.no_decay_keys = tuple(paramwise.get('no_decay_keys', ('pos_embed',)))
        self.custom_keys = dict(paramwise.get('custom_keys', {}))
        if not 0 < self.layer_decay_rate <= 1:  # nor nan
            raise ValueError(
                f'{type(self).__name__}: layer_decay_rate must be in (0, 1], got '
                f'{self.layer_decay_rate}'
            )
        for key, factors in self.custom_keys.items():
            if not all(0 <= factor < inf for factor in factors.values()):
                raise ValueError(
                    f'{type(self).__name__}: custom_keys[{key!r}] must be finite '
                    f'factors, none of them negative, got {factors}'
                )

    def __call__(self, model: nn.Module) -> OptimWrapper:
        if hasattr(model, 'module'):  # a distributed wrapper
            model = model.module
        optimizer_cfg = self.optimizer_cfg.copy()
        optimizer_cfg['params'] = self.parameter_groups(model)
        wrapper_cfg = self.optim_wrapper_cfg.copy()
        wrapper_cfg.setdefault('type', 'OptimWrapper')
        return OPTIM_WRAPPERS.build(
            wrapper_cfg, default_args=dict(optimizer=OPTIMIZERS.build(optimizer_cfg))
        )

    def parameter_groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """One group per pair of learning rate and weight decay, input side first."""
        base_lr = self.optimizer_cfg['lr']
        base_decay = self.optimizer_cfg.get('weight_decay', 0.0)
        backbones = self._layered_modules(model)
        groups: dict[tuple[float, float], dict[str, Any]] = {}
        for name, param in model.named_parameters():
            if not param.requires_grad:
                continue
            lr_scale = self._depth_scale(name, backbones)
            no_decay = (
                param.ndim == 1
                or name.endswith('bias')
                or any(key in name for key in self.no_decay_keys)
            )
            decay_mult = 0.0 if no_decay else 1.0
            custom = self._custom(name)
            lr_scale *= custom.get('lr_mult', 1.0)
            decay_mult = custom.get('decay_mult', decay_mult)
            group = groups.setdefault(
                (lr_scale, decay_mult),
                dict(
                    params=[],
                    param_names=[],
                    lr=base_lr * lr_scale,
                    weight_decay=base_decay * decay_mult,
                    lr_scale=lr_scale,
                ),
            )
            group['params'].append(param)
            group['param_names'].append(name)
        if not groups:
            raise ValueError(
                f'{type(self).__name__}: the model has no trainable parameter; lower '
                'frozen_stages or train a head'
            )
        ordered = [groups[key] for key in sorted(groups)]
        MMLogger.get_current_instance().info(
            f'Layer decay {self.layer_decay_rate}: {len(ordered)} parameter groups, '
            f'lr {ordered[0]["lr"]:.3g} to {ordered[-1]["lr"]:.3g}'
        )
        return ordered

    def _layered_modules(self, model: nn.Module) -> dict[str, nn.Module]:
        """Modules that know their layers, by prefix; the outermost are enough.

        The model itself counts if nothing in it does: mmpretrain's know the layers of
        their backbone, but no prefix.
        """
        found: dict[str, nn.Module] = {}
        for name, module in model.named_modules():
            inside = any(name.startswith(outer) for outer in found)
            if name and not inside and hasattr(module, 'get_layer_depth'):
                found[f'{name}.'] = module
        if not found and hasattr(model, 'get_layer_depth'):
            found[''] = model
        if self.layer_decay_rate != 1.0 and not found:
            raise ValueError(
                f'layer_decay_rate is {self.layer_decay_rate}, but no module of '
                f'{type(model).__name__} has get_layer_depth; use a backbone with it'
            )
        return found

    def _depth_scale(self, name: str, backbones: dict[str, nn.Module]) -> float:
        for prefix, module in backbones.items():
            if name.startswith(prefix):
                depth, num_depths = module.get_layer_depth(name, prefix=prefix)
                return self.layer_decay_rate ** (num_depths - 1 - depth)
        return 1.0

    def _custom(self, name: str) -> dict[str, float]:
        matches = [key for key in self.custom_keys if key in name]
        return self.custom_keys[max(matches, key=len)] if matches else {}
