"""Sharded training by mmengine's strategy interface."""

import resource
import time
from collections.abc import Callable, Sequence
from typing import Any

import mmengine
import torch
import torch.distributed as dist
from mmengine._strategy import DDPStrategy
from mmengine.device import get_device
from mmengine.dist import all_gather_object, is_distributed, is_main_process
from mmengine.optim import OptimWrapperDict
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from sapiens2_mm.checkpoint.distributed import ShardedSaver, load_sharded
from sapiens2_mm.checkpoint.io.pieces import has_pieces
from sapiens2_mm.checkpoint.loading import fill_parameters, own_part
from sapiens2_mm.checkpoint.mmengine_loader import drop_config
from sapiens2_mm.models.backbones.init import pretrained_cfg
from sapiens2_mm.registry import STRATEGIES

from .hooks.load_checkpoint_hook import unwrapped
from .parallelize import gathered, parameters_on_meta, shard, take_parameters


@STRATEGIES.register_module()
class FSDP2Strategy(DDPStrategy):
    """Parameters, gradients and optimizer state in parts, one per process.

    In any config, or by ``--cfg-options``::

        strategy = dict(type='sapiens2_mm.FSDP2Strategy', param_dtype='bfloat16')

    Only the main process has the weights of a new run as a whole, in host memory, while
    they are drawn; all others start without any. A backbone's ``init_cfg``, and
    ``load_from``, are read by all, each its own parts from the mapped file.

    For code that builds on it. After ``prepare`` the model is the one that was built,
    in no wrapper, and its parameters are ``DTensor`` on ``mesh`` whenever no forward or
    backward pass runs; buffers are whole in all processes. State dicts of model and
    optimizer have the names of a single process. ``model_state_dict`` and
    ``optim_state_dict`` must be called in all processes: whole tensors, on the CPU,
    come out in the main one alone. ``load_model_state_dict`` and
    ``load_optim_state_dict`` take whole tensors, such as a file that ``torch.load`` has
    mapped, or parts, in every process. ``save_checkpoint``, for all processes too,
    begins to write a folder that ``saver`` completes beside the training; a run goes on
    from it, and from files, with another number of processes, or without this strategy.

    Args:
        param_dtype: ``'bfloat16'`` gathers parameters and computes in it; parts,
            optimizer and checkpoints stay float32. None computes as the config's
            ``optim_wrapper`` says.
        reduce_dtype: what gradients are summed in.
        shard_size: number of processes that hold one copy in parts, such as those of
            one machine; all by default. Copies are kept alike as by DDP.
        kwargs: of mmengine's ``DDPStrategy``.

    Raises:
        ValueError: if the number of processes is no multiple of ``shard_size``.
    """

    def __init__(
        self,
        *,
        param_dtype: str | None = None,
        reduce_dtype: str | None = 'float32',
        shard_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.param_dtype = param_dtype and getattr(torch, param_dtype)
        self.reduce_dtype = reduce_dtype and getattr(torch, reduce_dtype)
        self.saver: ShardedSaver | None = None
        size = shard_size or self.world_size
        if self.world_size % size:
            raise ValueError(
                f'FSDP2Strategy: {self.world_size} processes do not divide into groups '
                f'of shard_size={size}'
            )
        device = torch.device(get_device()).type
        shape, names = (self.world_size // size, size), ('replicate', 'shard')
        first = int(size == self.world_size)
        self.mesh = init_device_mesh(
            device, shape[first:], mesh_dim_names=names[first:]
        )

    def _setup_env(self, *, launcher: str | None = None, **kwargs: Any) -> None:
        if launcher == 'none' and not is_distributed():
            backend = 'nccl' if torch.cuda.is_available() else 'gloo'
            store = dist.HashStore()
            dist.init_process_group(backend, store=store, rank=0, world_size=1)
        super()._setup_env(launcher=launcher, **kwargs)

    def build_model(self, model: nn.Module | dict) -> nn.Module:
        if is_main_process():
            return super().build_model(model)
        with parameters_on_meta():
            return super().build_model(model)

    def _init_model_weights(self, model: nn.Module) -> nn.Module:
        if is_main_process() and self._draws_weights:
            for backbone in self._pretrained(model).values():
                backbone.init_weights = lambda: None  # read in parts afterwards
            model.init_weights()
            for backbone in self._pretrained(model).values():
                del backbone.init_weights
        return model

    @property
    def _draws_weights(self) -> bool:
        return self.dispatch_kwargs.get('init_weights_for_test_or_val', True)

    @staticmethod
    def _pretrained(model: nn.Module) -> dict[str, nn.Module]:
        """Backbones that begin with the weights of a file, by their prefix."""
        return {
            f'{name}.': module
            for name, module in model.named_modules()
            if hasattr(module, 'encode')
            and pretrained_cfg(getattr(module, 'init_cfg', None))
        }

    def _wrap_model(self, model: nn.Module) -> nn.Module:
        whole, inner = take_parameters(model), unwrapped(model)
        shard(inner, self.mesh, self.param_dtype, self.reduce_dtype)
        model.to(self.mesh.device_type)
        if self._draws_weights:
            from_file = self._pretrained(model)
            for name, parameter in model.named_parameters():
                if not name.startswith(tuple(from_file)):
                    _scatter(parameter, whole.pop(name))
            for _, buffer in model.named_buffers():
                dist.broadcast(buffer, 0)
            for backbone in from_file.values():
                backbone.init_weights()
        self._log_memory(model)
        return model

    def _log_memory(self, model: nn.Module) -> None:
        total = sum(p.numel() for p in model.parameters())
        own = sum(p.to_local().numel() for p in model.parameters())
        peaks = ', '.join(f'{peak:.2f}' for peak in all_gather_object(peak_memory()))
        self.logger.info(
            f'{total:,} parameters, {own:,} in this of {self.world_size} processes; '
            f'their peak memory so far: {peaks} GB'
        )

    def model_state_dict(self) -> dict:
        return gathered(self.model.state_dict())

    def optim_state_dict(self) -> dict:
        return gathered(super().optim_state_dict())

    def load_model_state_dict(self, state_dict: dict, **kwargs: Any) -> None:
        fill_parameters(unwrapped(self.model), state_dict)
        super().load_model_state_dict(state_dict, **kwargs)

    def load_optim_state_dict(self, state_dict: dict) -> None:
        several = isinstance(self.optim_wrapper, OptimWrapperDict)
        wrappers = dict(self.optim_wrapper.items()) if several else {'': None}
        for name in wrappers:
            wrapper = wrappers[name] or self.optim_wrapper
            state = state_dict[name] if several else state_dict
            groups = wrapper.optimizer.param_groups
            parameters = [p for group in groups for p in group['params']]
            for index, values in state['state'].items():
                parameter = parameters[index]
                for key, value in values.items():
                    if isinstance(value, Tensor) and value.shape == parameter.shape:
                        values[key] = own_part(value, parameter)
        super().load_optim_state_dict(state_dict)

    def load_checkpoint(
        self,
        filename: str,
        *,
        map_location: Any = 'cpu',
        strict: bool = False,
        revise_keys: Sequence = ((r'^module.', ''),),
        callback: Callable | None = None,
    ) -> dict:
        """Load a file, or this process's parts of the folder of a sharded run."""
        options = dict(strict=strict, revise_keys=revise_keys)
        if not has_pieces(filename):
            return super().load_checkpoint(
                filename, map_location=map_location, callback=callback, **options
            )
        optimizer = getattr(getattr(self, 'optim_wrapper', None), 'optimizer', None)
        checkpoint = load_sharded(filename, unwrapped(self.model), optimizer)
        drop_config(checkpoint)
        if callback is not None:
            callback(checkpoint)
        self.load_model_state_dict(checkpoint.pop('state_dict'), **options)
        return checkpoint

    def resume(self, filename: str, **kwargs: Any) -> dict:
        kwargs['map_location'] = 'cpu'  # the device has no room for whole weights
        return super().resume(filename, **kwargs)

    def save_checkpoint(
        self,
        filename: str,
        *,
        save_optimizer: bool = True,
        save_param_scheduler: bool = True,
        extra_ckpt: dict | None = None,
        callback: Callable | None = None,
    ) -> None:
        """Begin to write a folder; ``callback`` is called in the main process alone.

        Raises:
            OSError: if the checkpoint before could not be written.
        """
        checkpoint = dict(extra_ckpt or {}, state_dict=self.model.state_dict())
        meta = checkpoint.setdefault('meta', {})
        meta.update(seed=self.seed, mmengine=mmengine.__version__)
        meta.update(time=time.strftime('%Y%m%d_%H%M%S'))
        if save_optimizer and hasattr(self, 'optim_wrapper'):
            checkpoint['optimizer'] = super().optim_state_dict()
        if save_param_scheduler and hasattr(self, 'param_schedulers'):
            checkpoint['param_schedulers'] = self.scheduler_state_dict()
        if callback is not None and is_main_process():
            callback(checkpoint)
        self.saver = self.saver or ShardedSaver()
        self.saver.save(checkpoint, filename)


def peak_memory() -> float:
    """GB that this process has used at most: of its GPU, else of the host."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


@torch.no_grad()
def _scatter(parameter: nn.Parameter, whole: Tensor) -> None:
    """Fill the parts of a parameter from the main process."""
    from torch.distributed.tensor import distribute_tensor

    mesh, placements = parameter.device_mesh, parameter.placements
    if whole.is_meta:
        whole = torch.empty_like(whole, device=mesh.device_type)
    parts = distribute_tensor(whole.to(mesh.device_type), mesh, placements)
    parameter.to_local().copy_(parts.to_local())
