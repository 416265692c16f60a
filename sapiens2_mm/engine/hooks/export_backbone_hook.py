"""Writes the pretrained encoders at the end of a run."""

from pathlib import Path

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.runner import Runner

from sapiens2_mm.models.selfsup.export import save_backbone
from sapiens2_mm.registry import HOOKS

from ..parallelize import gathered


@HOOKS.register_module()
class ExportBackboneHook(Hook):
    """Writes ``backbone_student.safetensors`` and ``backbone_teacher.safetensors``.

    They go to the work folder when training ends, have the keys of the released
    pretrained files, and fit ``init_cfg=dict(type='Pretrained', checkpoint=...)`` of
    any backbone of the same size. A run without a teacher writes the student alone.
    """

    def after_train(self, runner: Runner) -> None:
        model = runner.model.module if is_model_wrapper(runner.model) else runner.model
        encoders = ['student'] if model.teacher is None else ['student', 'teacher']
        for which in encoders:
            state = gathered(model.state_dict())  # by all processes, if sharded
            if is_main_process():
                path = Path(runner.work_dir) / f'backbone_{which}.safetensors'
                save_backbone(state, path, which)
                runner.logger.info(f'The {which} encoder was written to {path}')
