"""mmpose's and mmseg's own inferencers take our configs as they are."""

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config

from sapiens2_mm.registry import MODELS

ARCH = dict(embed_dims=32, num_layers=1, num_heads=2, feedforward_channels=64)
SLOW = ('0.4b', '0.8b', '1b', '5b')
SIZES = ['tiny', *(pytest.param(size, marks=pytest.mark.slow) for size in SLOW)]


@pytest.fixture
def image():
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (40, 30, 3), np.uint8)


def shrunk(repo_dir, task, pattern, head):
    """A config with a small network of the same form and input size."""
    (path,) = (repo_dir / 'configs' / task).glob(pattern)
    cfg = Config.fromfile(path)
    cfg.model.backbone.arch = ARCH
    cfg.model[head].update(in_channels=32, conv_out_channels=(8,))
    cfg.model[head].conv_kernel_sizes = (1,)
    cfg.model[head].deconv_out_channels = [8] * len(cfg.model[head].deconv_out_channels)
    return cfg


@pytest.fixture
def weights(tmp_path):
    def save(cfg, **meta):
        model = MODELS.build(cfg.model)
        path = str(tmp_path / 'iter_1.pth')
        torch.save(dict(state_dict=model.state_dict(), meta=dict(meta)), path)
        return path

    return save


@pytest.mark.parametrize('size', SIZES)
def test_pose(size, repo_dir, image, weights, tmp_path):
    apis = pytest.importorskip('mmpose.apis')
    from sapiens2_mm.datasets import Humans308Dataset

    cfg = shrunk(repo_dir, 'pose', f'sapiens2-{size}_*humans308-*', 'head')
    path = weights(cfg, dataset_meta=Humans308Dataset._load_metainfo())
    infer = apis.MMPoseInferencer(cfg, path, device='cpu')
    picture = str(tmp_path / 'a.png')
    cv2.imwrite(picture, image)
    for source, options, height in (
        (image, dict(), 40),
        (picture, dict(skeleton_style='openpose', draw_bbox=True), 40),
        (picture, dict(draw_heatmap=True, kpt_thr=0.0), 80),
    ):
        results = next(
            infer(source, return_vis=True, vis_out_dir=str(tmp_path / 'vis'), **options)
        )
        assert results['visualization'][0].shape == (height, 30, 3)
        (person,) = results['predictions'][0]
        assert np.isfinite(person['keypoints']).all()
        assert len(person['keypoints']) == len(person['keypoint_scores']) == 308
    assert (tmp_path / 'vis' / 'a.png').is_file()


@pytest.mark.parametrize('size', SIZES)
def test_seg(size, repo_dir, image, weights, tmp_path):
    apis = pytest.importorskip('mmseg.apis')
    from sapiens2_mm.apis import Inferencer
    from sapiens2_mm.datasets import Humans29Dataset

    cfg = shrunk(repo_dir, 'seg', f'sapiens2-{size}_*humans29-*', 'decode_head')
    path = weights(cfg, dataset_meta=Humans29Dataset._load_metainfo())
    infer = apis.MMSegInferencer(cfg, path, device='cpu')
    infer.show_progress = False
    picture = str(tmp_path / 'a.png')
    cv2.imwrite(picture, image)
    (expected,) = Inferencer(cfg, path)(picture)
    for source in (image, picture):
        results = infer(source, return_vis=True, out_dir=str(tmp_path), opacity=0.5)
        assert np.array_equal(results['predictions'], expected.labels)
        assert results['visualization'].shape[0] == 40
    assert (tmp_path / 'vis' / 'a.png').is_file()


@pytest.mark.parametrize(
    'host, name', [('mmpose', 'Pose2DInferencer'), ('mmseg', 'MMSegInferencer')]
)
def test_no_config_is_taken_from_the_weights(host, name, tmp_path):
    """The hosts execute it as Python, whoever wrote it."""
    infer = getattr(pytest.importorskip(f'{host}.apis'), name)
    trap, path = tmp_path / 'executed', str(tmp_path / 'iter_1.pth')
    code = f'model = open({str(trap)!r}, "w").close()'
    hub = dict(cfg=code, runtime_info=dict(cfg=code, config=code), log_scalars={})
    meta = dict(cfg=code, config=code)
    state = dict(w=torch.ones(1))
    torch.save(dict(state_dict=state, meta=meta, message_hub=hub), path)
    with pytest.raises(ValueError, match='Cannot find the config in the checkpoint'):
        infer(None, path, device='cpu')
    assert not trap.exists()
