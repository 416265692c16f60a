"""Pictures of predictions, for every task."""

from pathlib import Path
from typing import Any

import numpy as np
from mmengine.dist import get_rank, get_world_size, master_only
from mmengine.hooks import Hook
from mmengine.runner import BaseLoop, Runner
from mmengine.visualization import LocalVisBackend, Visualizer

from sapiens2_mm.datasets.io.image import read_image
from sapiens2_mm.registry import HOOKS


@HOOKS.register_module()
class VisualizationHook(Hook):
    """Draws the samples of validation and test, one picture each.

    It draws with the runner's own visualizer (``add_datasample``), whatever the task
    or host. The pictures of the main process go to every backend of the visualizer,
    those of all processes as PNG files to ``out_dir`` if there is one, which then
    takes the place of ``LocalVisBackend``. They are named after the input image; a
    second sample of the same name gets a number, so none is overwritten.

    Args:
        enable: draw at all; off by default, ``tools/test.py --show-dir`` turns it on.
        draw: the same, as mmseg and mmdet call it.
        interval: draw every so many batches.
        max_images: stop after so many pictures in one pass; None for all.
        out_dir: folder of the files.
        draw_gt: draw the annotation next to the prediction.
        show: also open a window.
        wait_time: seconds the window stays; 0 waits for a key.
    """

    def __init__(
        self,
        enable: bool = False,
        interval: int = 1,
        max_images: int | None = None,
        out_dir: str | None = None,
        draw_gt: bool = False,
        show: bool = False,
        wait_time: float = 0,
        draw: bool = False,
    ) -> None:
        self.enable = enable or draw
        self.interval = interval
        self.max_images = max_images
        self.out_dir = out_dir
        self.draw_gt = draw_gt
        self.show = show
        self.wait_time = wait_time
        self._names: dict[str, int] = {}  # of the pictures -> number of the next one

    def before_val_epoch(self, runner: Runner) -> None:
        self._names.clear()

    def before_test_epoch(self, runner: Runner) -> None:
        self._names.clear()

    def after_val_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any, outputs: Any
    ) -> None:
        self._draw(runner, batch_idx, outputs, 'val')

    def after_test_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any, outputs: Any
    ) -> None:
        self._draw(runner, batch_idx, outputs, 'test')

    def _free_name(self, stem: str) -> str:
        name = stem
        while name in self._names:
            name = f'{stem}_{self._names[stem]}'
            self._names[stem] += 1
        self._names[name] = 1
        return name

    def _draw(self, runner: Runner, batch_idx: int, outputs: list, phase: str) -> None:
        if not self.enable or batch_idx % self.interval:
            return
        step = _iteration(runner)
        for data_sample in outputs:
            if self.max_images is not None and len(self._names) >= self.max_images:
                return
            image = np.ascontiguousarray(read_image(data_sample.img_path)[..., ::-1])
            name = self._free_name(Path(data_sample.img_path).stem)
            if get_world_size() > 1:  # another rank may draw a namesake
                name += f'_rank{get_rank()}'
            tag, out_file = f'{phase}_{name}', None
            if self.out_dir is not None:
                folder = phase if phase == 'test' else f'{phase}_{step:07d}'
                out_file = str(Path(self.out_dir, folder, f'{name}.png'))
            runner.visualizer.add_datasample(
                tag,
                image,
                data_sample=data_sample,
                draw_gt=self.draw_gt,
                draw_pred=True,
                show=self.show,
                wait_time=self.wait_time,
                out_file=out_file,
                step=step,
            )
            if out_file is not None:
                _send_to_backends(runner.visualizer, tag, step)


@master_only
def _send_to_backends(visualizer: Visualizer, name: str, step: int) -> None:
    """The picture just drawn, which went to a file alone."""
    for backend in visualizer._vis_backends.values():
        if not isinstance(backend, LocalVisBackend):
            backend.add_image(name, visualizer.get_image(), step)


def _iteration(runner: Runner) -> int:
    """Iterations trained so far; 0 in a run that only tests."""
    loop = runner._train_loop  # runner.iter would build it, training data and all
    return loop.iter if isinstance(loop, BaseLoop) else 0
