"""One rule says which steps run at inference."""

import pytest
from mmengine.config import Config

from sapiens2_mm.apis.pipeline import inference_pipeline
from sapiens2_mm.datasets.transforms import AreaCubicResize, LoadImage


def names(pipeline):
    return [type(step).__name__ for step in pipeline.transforms]


def with_steps(*steps, scope='mmengine'):
    dataset = dict(pipeline=list(steps))
    return Config(dict(default_scope=scope, test_dataloader=dict(dataset=dataset)))


@pytest.mark.parametrize(
    'task, host',
    [
        ('pose', 'mmpose'),
        ('seg', 'mmseg'),
        *((task, 'mmcv') for task in ('normal', 'pointmap', 'albedo', 'matting')),
        ('depth', 'mmcv'),
    ],
)
def test_shipped_pipelines_lose_their_annotations(task, host, repo_dir):
    pytest.importorskip(host)
    for path in sorted((repo_dir / 'configs' / task).glob('*.py')):
        cfg = Config.fromfile(path)
        found = names(inference_pipeline(cfg))
        steps = cfg.test_dataloader.dataset.pipeline
        expected = [step['type'].split('.')[-1] for step in steps]
        expected[0] = 'LoadImage'  # whatever its name in the config
        left_out = [name for name in expected if name not in found]
        assert found == [name for name in expected if name in found]
        assert found[0] == 'LoadImage' and found[-1].startswith('Pack')
        assert all('Load' in name or 'Target' in name for name in left_out), left_out
        assert len(found) == {'pose': 4}.get(task, 3)


def test_names_without_prefix_are_those_of_the_config(repo_dir):
    """Whatever model was built before and left its scope behind."""
    pytest.importorskip('mmseg')
    pytest.importorskip('mmpose')
    from mmengine.registry import init_default_scope

    steps = [
        dict(type='LoadImageFromFile'),
        dict(type='LoadAnnotations'),
        dict(type='PackSegInputs'),
    ]
    for before in ('mmpose', 'sapiens2_mm', 'mmseg'):
        init_default_scope(before)
        pipeline = inference_pipeline(with_steps(*steps, scope='mmseg'))
        assert names(pipeline) == ['LoadImage', 'PackSegInputs']
        assert isinstance(pipeline.transforms[0], LoadImage)  # takes arrays too
        own = [dict(type='LoadImage'), dict(type='AreaCubicResize', size=(4, 3))]
        pipeline = inference_pipeline(with_steps(*own, scope='sapiens2_mm'))
        assert isinstance(pipeline.transforms[1], AreaCubicResize)


@pytest.mark.parametrize(
    'step',
    [
        dict(type='mmseg.PhotoMetricDistortion'),
        dict(type='mmseg.RandomCrop', crop_size=(2, 2)),
        dict(type='sapiens2_mm.SegRandomCrop', crop_size=(2, 2)),
        dict(type='sapiens2_mm.SegPhotometricDistortion'),
        dict(type='sapiens2_mm.PosePhotometricDistortion'),
        dict(type='sapiens2_mm.SegFlip', prob=0.5),
        dict(type='sapiens2_mm.RandomBackground'),
        dict(type='sapiens2_mm.DenseRandomScale'),
        dict(type='sapiens2_mm.PhotometricDistortion'),
        dict(type='RandomApply', transforms=[]),
    ],
)
def test_random_steps_are_refused(step):
    pytest.importorskip('mmseg')
    with pytest.raises(ValueError, match=rf'the step {step["type"]} of .*; remove it'):
        inference_pipeline(with_steps(dict(type='sapiens2_mm.LoadImage'), step))


def test_the_pipeline_may_be_wrapped_or_absent():
    inner = dict(pipeline=[dict(type='sapiens2_mm.LoadImage')])
    for dataset in (
        dict(type='RepeatDataset', dataset=inner),
        dict(type='ConcatDataset', datasets=[dict(dataset=inner), {}]),
    ):
        cfg = Config(dict(test_dataloader=dict(dataset=dataset)))
        assert names(inference_pipeline(cfg)) == ['LoadImage']
    with pytest.raises(ValueError, match=r'no test_dataloader\.dataset\.pipeline'):
        inference_pipeline(Config(dict(test_dataloader=None)))


def test_a_step_given_as_a_class():
    cfg = with_steps(dict(type=LoadImage))
    (step,) = inference_pipeline(cfg).transforms
    assert isinstance(step, LoadImage)
