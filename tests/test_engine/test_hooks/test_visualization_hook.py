from types import SimpleNamespace

import mmcv
import numpy as np
import pytest
from mmengine.registry import VISBACKENDS
from mmengine.runner import BaseLoop
from mmengine.structures import BaseDataElement
from mmengine.visualization import BaseVisBackend

from sapiens2_mm.engine.hooks import VisualizationHook
from sapiens2_mm.visualization.dense_visualizer import DenseVisualizer


class Visualizer(DenseVisualizer):
    shown = None

    def add_datasample(self, name, image, data_sample, **kwargs):
        assert image[0, 0].tolist() == [255, 0, 0]  # red arrives as RGB
        self.shown = kwargs.pop('show'), kwargs['wait_time']
        super().add_datasample(name, image, None, **kwargs)


@VISBACKENDS.register_module()
class KeptPictures(BaseVisBackend):
    """In place of TensorBoard or W&B."""

    def __init__(self):
        super().__init__('')
        self.pictures = []

    def _init_env(self):
        pass

    experiment = None

    def add_image(self, name, image, step=0, **kwargs):
        self.pictures.append((name, image.shape, step))


class Loop(BaseLoop):
    iter = 7

    def __init__(self):
        pass

    def run(self):
        pass


@pytest.fixture
def runner(tmp_path):
    visualizer = Visualizer(
        vis_backends=[dict(type='LocalVisBackend'), KeptPictures()],
        save_dir=str(tmp_path / 'log'),
    )
    return SimpleNamespace(visualizer=visualizer, _train_loop=Loop())


@pytest.fixture
def outputs(tmp_path):
    path = tmp_path / '人 1.png'
    mmcv.imwrite(np.full((4, 4, 3), (0, 0, 255), np.uint8), str(path))
    return [BaseDataElement(metainfo=dict(img_path=str(path))) for _ in range(2)]


def written(folder):
    return sorted(path.name for path in folder.rglob('*.png'))


def test_draws_every_sample_under_its_own_name(tmp_path, runner, outputs):
    hook = VisualizationHook(enable=True, out_dir=str(tmp_path / 'out'))
    hook.before_test_epoch(runner)
    hook.after_test_iter(runner, 0, None, outputs)
    hook.after_test_iter(runner, 1, None, outputs)
    names = ['人 1.png', '人 1_1.png', '人 1_2.png', '人 1_3.png']
    assert written(tmp_path / 'out' / 'test') == sorted(names)


def test_a_number_takes_no_other_picture_s_name(tmp_path, runner, outputs):
    mmcv.imwrite(
        np.full((4, 4, 3), (0, 0, 255), np.uint8), str(tmp_path / '人 1_1.png')
    )
    other = BaseDataElement(metainfo=dict(img_path=str(tmp_path / '人 1_1.png')))
    hook = VisualizationHook(enable=True, out_dir=str(tmp_path / 'out'))
    hook.before_test_epoch(runner)
    hook.after_test_iter(runner, 0, None, [*outputs, other])
    names = ['人 1.png', '人 1_1.png', '人 1_1_1.png']
    assert written(tmp_path / 'out' / 'test') == sorted(names)


def test_interval_and_max_images(tmp_path, runner, outputs):
    hook = VisualizationHook(
        enable=True, interval=2, max_images=3, out_dir=str(tmp_path / 'out')
    )
    hook.before_val_epoch(runner)
    for batch_idx in range(4):
        hook.after_val_iter(runner, batch_idx, None, outputs)
    assert len(written(tmp_path / 'out' / 'val_0000007')) == 3


def test_off_by_default(tmp_path, runner, outputs):
    VisualizationHook().after_test_iter(runner, 0, None, outputs)
    assert not written(tmp_path / 'log')


@pytest.mark.parametrize('turn_on', ['enable', 'draw'])  # mmpose's word, mmseg's word
def test_pictures_reach_every_backend(turn_on, tmp_path, runner, outputs):
    hook = VisualizationHook(**{turn_on: True}, show=True, wait_time=2)
    hook.after_val_iter(runner, 0, None, outputs)
    assert runner.visualizer.shown == (True, 2)
    assert written(tmp_path / 'log') == ['val_人 1_1_7.png', 'val_人 1_7.png']
    kept = runner.visualizer.get_backend('KeptPictures').pictures
    assert kept == [('val_人 1', (4, 4, 3), 7), ('val_人 1_1', (4, 4, 3), 7)]


def test_with_a_folder_the_other_backends_get_them_too(tmp_path, runner, outputs):
    hook = VisualizationHook(enable=True, out_dir=str(tmp_path / 'out'))
    hook.after_test_iter(runner, 0, None, outputs)
    kept = runner.visualizer.get_backend('KeptPictures').pictures
    assert [name for name, _, _ in kept] == ['test_人 1', 'test_人 1_1']
    assert len(written(tmp_path / 'out')) == 2
    assert not written(tmp_path / 'log')  # once is enough


def test_a_run_that_only_tests_builds_no_train_loop(tmp_path, runner, outputs):
    runner._train_loop = dict(type='a loop that is not built yet')
    hook = VisualizationHook(enable=True, out_dir=str(tmp_path / 'out'))
    hook.before_val_epoch(runner)
    hook.after_val_iter(runner, 0, None, outputs)
    assert len(written(tmp_path / 'out' / 'val_0000000')) == 2
