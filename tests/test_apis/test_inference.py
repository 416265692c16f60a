"""What holds for the inference of every task."""

import threading

import numpy as np
import pytest
import torch
from mmengine.config import Config
from PIL import Image

from sapiens2_mm.apis import (
    DenseResult,
    Failure,
    Inferencer,
    PoseResult,
    SegResult,
    convert_keypoints,
    init_model,
)
from sapiens2_mm.apis.inference import infer
from sapiens2_mm.apis.jobs import make_jobs
from sapiens2_mm.registry import VISUALIZERS

TASKS = ['pose', 'seg', 'normal', 'pointmap', 'albedo', 'matting', 'depth']
SMALL = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)


@pytest.fixture(scope='module')
def make(repo_dir):
    """Inferencer of a task with a tiny random model, built once."""
    made = {}

    def make(task, **options):
        if task in ('pose', 'seg'):
            pytest.importorskip({'pose': 'mmpose', 'seg': 'mmseg'}[task])
        if task not in made:
            (path,) = (repo_dir / 'configs' / task).glob('*tiny*_synthetic-humans-*.py')
            torch.manual_seed(0)
            made[task] = init_model(path)
        return Inferencer(made[task], **options)

    return make


@pytest.fixture
def photos(data_dir):
    return sorted((data_dir / 'synthetic_humans' / 'rgb').glob('*.jpg'))[:3]


def arrays(result):
    if isinstance(result, PoseResult):
        return [result.keypoints, result.keypoint_scores]
    if isinstance(result, SegResult):
        return [result.labels]
    return list(result.maps.values())


def options_of(task):
    return dict(whole_image=True) if task == 'pose' else {}


@pytest.mark.parametrize('task', TASKS)
def test_any_form_of_a_picture_gives_the_same(task, make, photos):
    inferencer = make(task)
    assert inferencer.task.name == task
    (expected,) = inferencer(photos[0], **options_of(task))
    kind = {'pose': PoseResult, 'seg': SegResult}.get(task, DenseResult)
    assert type(expected) is kind and expected.picture.path == str(photos[0])
    image = Image.open(photos[0])
    rgb = np.asarray(image)
    assert np.array_equal(expected.picture.image, rgb[..., ::-1])
    for source, order in ((image, 'bgr'), (rgb[..., ::-1], 'bgr'), (rgb, 'rgb')):
        (found,) = inferencer(source, channel_order=order, **options_of(task))
        for one, other in zip(arrays(found), arrays(expected), strict=True):
            assert np.array_equal(one, other) and isinstance(one, np.ndarray)


def test_results_come_in_order_with_bad_pictures_between(make, photos, tmp_path):
    (tmp_path / 'bad.jpg').write_text('no picture')
    inputs = [photos[0], tmp_path / 'bad.jpg', photos[1], tmp_path / 'gone.jpg']
    inferencer = make('normal')
    alone = list(inferencer(photos[:2]))
    for batch_size in (1, 3, 9):
        a, bad, b, gone = inferencer(inputs, batch_size=batch_size, skip_errors=True)
        assert isinstance(bad, Failure) and bad.path == str(tmp_path / 'bad.jpg')
        assert 'cannot read image' in bad.reason and 'gone.jpg' in gone.reason
        for found, expected in zip((a, b), alone, strict=True):
            np.testing.assert_allclose(
                found.maps['normal'], expected.maps['normal'], atol=1e-4
            )
    with pytest.raises(ValueError, match=r'cannot read image .*bad\.jpg'):
        list(inferencer(inputs))


def test_the_next_picture_is_read_during_the_forward_pass(make, photos, monkeypatch):
    """The first forward pass waits until the second picture was prepared."""
    inferencer = make('normal')
    prepared, samples = threading.Event(), inferencer.task.samples

    def watched(job):
        yield from samples(job)
        if job.picture.path == str(photos[1]):
            prepared.set()

    forward = inferencer.forward

    def waiting(batch):
        assert prepared.wait(20)
        return forward(batch)

    monkeypatch.setattr(inferencer.task, 'samples', watched)
    monkeypatch.setattr(inferencer, 'forward', waiting)
    assert len(list(inferencer(photos))) == 3


def test_pictures_are_read_as_they_are_asked_for(make, photos):
    read = []

    def endless():
        while True:
            read.append(1)
            yield photos[0]

    results = make('seg')(endless())
    next(results), next(results)
    results.close()
    assert len(read) < 8


def test_several_models_on_one_decoded_picture(make, photos, monkeypatch):
    from sapiens2_mm.apis import inputs

    read = []
    read_image = inputs.read_image
    monkeypatch.setattr(
        inputs, 'read_image', lambda path: read.append(path) or read_image(path)
    )
    models = [make('pose'), make('seg'), make('normal')]
    boxes = [[[10, 20, 200, 300], [20, 5, 100, 200]], [], [[30, 40, 80, 190]]]
    jobs = make_jobs(photos, needs_boxes=True, boxes=boxes)
    together = list(infer(models, jobs, batch_size=2))
    assert len(read) == 3
    for path, people, (pose, seg, normal) in zip(photos, boxes, together, strict=True):
        assert pose.boxes.tolist() == people and len(pose.keypoints) == len(people)
        (alone,) = models[1](path)
        assert (seg.labels == alone.labels).mean() > 0.99
        assert normal.maps['normal'].shape[1:] == seg.labels.shape


def test_people_of_pictures(make, photos, tmp_path, log):
    inferencer = make('pose')
    path = str(photos[0])
    (whole,) = inferencer(path, whole_image=True)
    height, width = whole.picture.size
    assert whole.boxes.tolist() == [[0, 0, width, height]]
    assert whole.boxes_from == 'whole image'

    def detector(image):
        assert image.dtype == np.uint8 and image.shape == (height, width, 3)
        return [[0, 0, width, height], [9, 9, 5, 5]]

    (found,) = inferencer(path, boxes=detector)
    assert found.boxes_from == 'detector' and len(found.skipped_boxes) == 1
    assert np.array_equal(found.keypoints, whole.keypoints)
    (found,) = inferencer(path)
    assert found.boxes_from == 'MoveNet MultiPose' and len(found.boxes) == 1
    assert np.array_equal(
        found.box_scores, found.data_sample.pred_instances.bbox_scores
    )
    file = tmp_path / 'boxes.json'
    file.write_text(
        '{"images": [{"id": "x", "file_name": "000000.jpg"}], "annotations": '
        f'[{{"image_id": "x", "bbox": [0, 0, {width}, {height}]}}]}}'
    )
    known, unknown = inferencer(photos[:2], boxes=file)
    assert known.boxes_from == str(file) and known.image_id == 'x'
    assert np.array_equal(known.keypoints, whole.keypoints)
    assert unknown.keypoints.shape == (0, 308, 2) and unknown.image_id is None
    assert 'no entry for 1 of 2 pictures' in log.text
    drawn = inferencer.draw(unknown)
    assert np.array_equal(drawn, unknown.picture.image[..., ::-1])


def test_arguments_that_do_not_fit(make, photos):
    pose, seg = make('pose'), make('seg')
    with pytest.raises(ValueError, match='give either boxes, or whole_image=True'):
        pose(photos[0], boxes=[], whole_image=True)
    with pytest.raises(ValueError, match='boxes are for pose models'):
        seg(photos[0], boxes=[])
    with pytest.raises(ValueError, match='got 2 pictures and 1 lists of boxes; give'):
        pose(photos[:2], boxes=[[[1, 2, 3, 4]]])
    with pytest.raises(ValueError, match="must be 'bgr' or 'rgb', got 'gbr'"):
        seg(photos[0], channel_order='gbr')
    with pytest.raises(ValueError, match='batch_size must be at least 1, got 0'):
        seg(photos[0], batch_size=0)
    with pytest.raises(ValueError, match=r"dtype must be one of \[.*got 'int8'"):
        Inferencer(Config(), dtype='int8')


def test_config_checkpoint_and_dtype(repo_dir, tmp_path, photos, make):
    path = tmp_path / 'normal.pth'
    torch.save(make('normal').model.state_dict(), path)
    (config,) = (repo_dir / 'configs' / 'normal').glob('*tiny*.py')
    (expected,) = make('normal')(photos[0])
    (found,) = Inferencer(config, path)(photos[0])
    assert np.array_equal(found.maps['normal'], expected.maps['normal'])
    half = Inferencer(config, path, dtype='bf16')
    assert half.model.backbone.cls_token.dtype == torch.bfloat16
    (found,) = half(photos[0])
    normal = found.maps['normal']
    assert normal.dtype == np.float32
    assert (normal * expected.maps['normal']).sum(0).mean() > 0.98


def test_compiling_is_asked_for(make, photos, monkeypatch):
    inferencer = make('normal')
    (expected,) = inferencer(photos[0])
    assert inferencer.model.backbone._compiled_call_impl is None
    monkeypatch.setattr(torch, 'compile', lambda module, *a, **k: lambda *x: module(*x))
    try:
        (found,) = make('normal', compile=True)(photos[0])
        assert inferencer.model.backbone._compiled_call_impl is not None
    finally:
        inferencer.model.backbone._compiled_call_impl = None
    assert np.array_equal(found.maps['normal'], expected.maps['normal'])


@pytest.mark.parametrize('task', ['pose', 'seg', 'normal'])
def test_drawing_registers_no_visualizer_for_ever(task, make, photos):
    (result,) = make(task)(photos[0], **options_of(task))
    kind = VISUALIZERS.get(make(task).model.cfg.visualizer.type)
    before = dict(kind._instance_dict)
    drawn = make(task).draw(result)
    assert drawn.dtype == np.uint8 and drawn.shape[0] == result.picture.size[0]
    assert dict(kind._instance_dict) == before


def test_converted_keypoints_are_drawn_without_own_colors(make, photos, monkeypatch):
    inferencer = make('pose')
    cfg = dict(inferencer.model.cfg.visualizer, kpt_color=[[255, 0, 0]] * 308)
    monkeypatch.setitem(inferencer.model.cfg._cfg_dict, 'visualizer', cfg)
    (result,) = inferencer(photos[0], whole_image=True)
    converted = convert_keypoints(result, 'coco')
    own = inferencer.draw(result, kpt_thr=0)
    assert not np.array_equal(own, inferencer.draw(converted, kpt_thr=0))
    assert np.array_equal(own, inferencer.draw(result, kpt_thr=0))


@pytest.mark.parametrize('task', TASKS)
def test_numbers_that_are_not_finite_can_be_drawn(task, make, photos, recwarn):
    inferencer = make(task)
    (result,) = inferencer(photos[0], **options_of(task))
    for value in arrays(result):
        if value.dtype == np.float32:
            value[..., : value.shape[-1] // 2] = np.nan
    assert inferencer.draw(result).dtype == np.uint8
