import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from mmengine.dataset import RepeatDataset
from mmengine.structures import InstanceData

pytest.importorskip('mmpose')
pytest.importorskip('pycocotools')

from mmpose.structures import PoseDataSample

from sapiens2_mm.datasets import Humans308Dataset
from sapiens2_mm.evaluation import KeypointOKSMetric
from sapiens2_mm.registry import DATASETS, METRICS


def make_dataset(path, table, **kwargs):
    return Humans308Dataset(
        ann_file=path.name,
        data_root=str(path.parent),
        metainfo=table,
        test_mode=True,
        **kwargs,
    )


def samples_of(dataset, shift=0.0, score=0.9):
    """The truth of a dataset as predictions, moved by ``shift`` pixels."""
    samples = []
    for info in (dataset[index] for index in range(len(dataset))):
        instances = InstanceData(bboxes=info['bbox'], bbox_scores=info['bbox_score'])
        sample = PoseDataSample(gt_instances=instances)
        sample.pred_instances = InstanceData(
            keypoints=info['keypoints'] + shift,
            keypoint_scores=np.full(info['keypoints'].shape[:2], score, np.float32),
        )
        keys = ('img_id', 'id', 'category_id', 'raw_ann_info')
        sample.set_metainfo({key: info[key] for key in keys})
        samples.append(sample.to_dict())
    return samples


def evaluate(dataset, samples, **kwargs):
    metric = KeypointOKSMetric(**kwargs)
    metric.dataset_meta = dataset.metainfo
    metric.process(None, samples)
    return metric.evaluate(len(samples))


def test_truth_of_the_308_keypoints(data_dir):
    dataset = Humans308Dataset(
        data_root=str(data_dir / 'synthetic_humans'),
        ann_file='annotations/train.json',
        test_mode=True,
    )
    metrics = evaluate(dataset, samples_of(dataset))
    assert next(iter(metrics)) == 'coco/AP'
    assert metrics['coco/AP'] == metrics['coco/AR'] == 1.0
    for name in ('body', 'foot', 'face', 'left_hand', 'right_hand'):
        assert metrics[f'coco/{name}_AP'] in (1.0, -1.0)
    assert metrics['coco/face_AP'] == 1.0
    worse = evaluate(dataset, samples_of(dataset, shift=3.0))
    assert worse['coco/face_AP'] < worse['coco/body_AP']
    chosen = evaluate(dataset, samples_of(dataset), groups=['face'])
    assert [name for name in chosen if name.endswith('_AP')] == ['coco/face_AP']


@pytest.mark.parametrize('part', [dict(indices=2), dict(sample_interval=2)])
def test_part_of_a_file_is_scored_on_that_part(data_dir, part):
    dataset = Humans308Dataset(
        data_root=str(data_dir / 'synthetic_humans'),
        ann_file='annotations/train.json',
        test_mode=True,
        **part,
    )
    samples = samples_of(dataset)
    assert len(samples) == 2
    assert evaluate(dataset, samples)['coco/AR'] == 1.0
    samples[1]['pred_instances']['keypoints'] += 100
    assert evaluate(dataset, samples)['coco/AR'] == 0.5


def test_agrees_with_mmpose_on_a_clean_file(mini_coco, table5):
    mmpose_metric = pytest.importorskip('mmpose.evaluation').CocoMetric
    rng = np.random.default_rng(1)
    path = mini_coco(*[dict(num_keypoints=5) for _ in range(6)])
    dataset = make_dataset(path, table5)
    samples = samples_of(dataset, score=0.7)
    for sample in samples:
        predicted = sample['pred_instances']
        predicted['keypoints'] = predicted['keypoints'] + rng.normal(0, 4, (1, 5, 2))
        predicted['keypoint_scores'] = rng.random((1, 5))
    ours = evaluate(dataset, samples)
    theirs = mmpose_metric(ann_file=str(path))
    theirs.dataset_meta = dataset.metainfo
    theirs.process(None, samples)
    for name, value in theirs.evaluate(len(samples)).items():
        assert ours[name] == pytest.approx(value, abs=1e-6), name
    assert 0.1 < ours['coco/AP'] < 0.9


@pytest.mark.parametrize('category', [0, 7])
def test_any_category_id(mini_coco, table5, category):
    path = mini_coco({}, {}, categories=[dict(id=category, name='worker')])
    dataset = make_dataset(path, table5)
    assert evaluate(dataset, samples_of(dataset))['coco/AP'] == 1.0


def test_any_image_and_annotation_id(mini_coco, table5):
    path = mini_coco(
        dict(id='x'), dict(id=0), dict(id=10**15), image_ids=['a1', '0007', 10**12]
    )
    dataset = make_dataset(path, table5)
    assert evaluate(dataset, samples_of(dataset))['coco/AP'] == 1.0
    foreign = samples_of(dataset)
    foreign[1]['img_id'] = 'b2'
    with pytest.raises(ValueError, match=r"image 'b2': this id is not in .*\.json"):
        evaluate(dataset, foreign)


def test_persons_left_out_cost_nothing(mini_coco, table5):
    crowd = dict(iscrowd=1, keypoints=[0] * 15, segmentation=dict(counts=[], size=[1]))
    broken = dict(bbox=[5, 5, 0, 0])
    path = mini_coco({}, crowd, broken)
    dataset = make_dataset(path, table5)
    samples = samples_of(dataset)
    assert len(samples) == 1
    assert evaluate(dataset, samples)['coco/AP'] == 1.0
    on_crowd = samples_of(dataset, score=0.99)[0]
    on_crowd.update(img_id=1, id=1)
    assert evaluate(dataset, [*samples, on_crowd])['coco/AP'] == 1.0


def test_only_the_wanted_categories_are_truth(mini_coco, table5):
    categories = [dict(id=1, name='person'), dict(id=2, name='statue')]
    path = mini_coco({}, dict(category_id=2), categories=categories)
    dataset = make_dataset(path, table5, category_names=['person'])
    assert evaluate(dataset, samples_of(dataset))['coco/AP'] == 1.0


def test_metainfo_without_sigmas_or_a_group(mini_coco, table5):
    dataset = make_dataset(mini_coco({}), table5)
    message = r"the groups \['head', 'legs'\]; .*and the groups \['face'\]"
    with pytest.raises(ValueError, match=message):
        evaluate(dataset, samples_of(dataset), groups=['face'])
    meta = dataset.metainfo
    for sigmas in ([], [0.1], [0.1] * 17):
        with pytest.raises(ValueError, match=f'5 keypoints, {len(sigmas)} sigmas'):
            KeypointOKSMetric().dataset_meta = {**meta, 'sigmas': sigmas}
    with pytest.raises(ValueError, match='None keypoints, 0 sigmas'):
        KeypointOKSMetric().dataset_meta = {}


@pytest.mark.parametrize('number', [1, 4, 6])
def test_predictions_of_another_number(mini_coco, table5, number):
    dataset = make_dataset(mini_coco({}), table5)
    samples = samples_of(dataset)
    instances = samples[0]['pred_instances']
    instances['keypoints'] = np.zeros((1, number, 2))
    instances['keypoint_scores'] = np.ones((1, number))
    with pytest.raises(ValueError, match=f'{number} keypoints, the metainfo has 5'):
        evaluate(dataset, samples)


def test_no_prediction(mini_coco, table5, log):
    dataset = make_dataset(mini_coco({}, {}), table5)
    metrics = evaluate(dataset, [])
    assert metrics['coco/AP'] == metrics['coco/AR'] == 0.0
    assert any('2 of 2 annotated images' in r.message for r in log.records)


def test_no_truth(mini_coco, table5, tmp_path):
    dataset = make_dataset(mini_coco({}), table5)
    empty = tmp_path / 'empty.json'
    empty.write_text(json.dumps(dict(images=[], annotations=[])))
    with pytest.raises(ValueError, match=r'empty\.json holds no person to score'):
        evaluate(dataset, [], ann_file=str(empty))
    samples = samples_of(dataset)
    del samples[0]['raw_ann_info']
    with pytest.raises(ValueError, match=r"image 0 names no .*'raw_ann_info' to meta_"):
        evaluate(dataset, samples)


def test_wrapped_datasets(mini_coco, table5):
    dataset = make_dataset(mini_coco({}, {}), table5)
    repeated = RepeatDataset(dataset, times=2)
    assert evaluate(repeated, samples_of(dataset) * 2)['coco/AP'] == 1


def another_file(folder, keep=None):
    """Some persons of the first file under the same ids, each 3 pixels to the left."""
    content = json.loads((folder / 'annotations.json').read_text())
    content['annotations'] = content['annotations'][:keep]
    for annotation in content['annotations']:
        annotation['keypoints'][::3] = [x - 3 for x in annotation['keypoints'][::3]]
    path = folder / 'other.json'
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize('wrapper', ['ConcatDataset', 'mmpose.CombinedDataset'])
def test_two_files_of_the_same_ids(mini_coco, table5, tmp_path, wrapper):
    table5['joint_weights'] = [1.0] * 5
    part = dict(type='sapiens2_mm.Humans308Dataset', metainfo=table5, test_mode=True)
    first = dict(part, ann_file=str(mini_coco({}, {}, {})))
    second = dict(part, ann_file=str(another_file(tmp_path)), indices=[0, 2])
    both = dict(type=wrapper, datasets=[first, second])
    if wrapper == 'mmpose.CombinedDataset':
        both['metainfo'] = table5
    both = DATASETS.build(both)
    samples = samples_of(both)
    assert len(samples) == 5
    prefix = str(tmp_path / 'out')
    metrics = evaluate(both, samples, outfile_prefix=prefix)
    assert metrics['coco/AP'] == metrics['coco/AR'] == 1
    counts = [
        len(json.loads((tmp_path / f'out{part}.keypoints.json').read_text()))
        for part in ('', '_1')
    ]
    assert counts == [3, 2]
    samples[3]['pred_instances']['keypoints'] += 100  # of the second file
    assert evaluate(both, samples)['coco/AR'] == pytest.approx(4 / 5)
    with pytest.raises(
        ValueError, match=r'image 0 is in .*other\.json .*leave ann_file'
    ):
        evaluate(both, samples, ann_file=str(tmp_path / 'annotations.json'))


def test_two_datasets_keep_their_files(mini_coco, table5, tmp_path):
    first = make_dataset(mini_coco({}, {}), table5)
    make_dataset(another_file(tmp_path, 1), table5)  # of the same name, and later
    samples = samples_of(first)
    samples[0]['pred_instances']['keypoints'] += 100
    assert evaluate(first, samples)['coco/AR'] == 0.5


def test_minus_one_warns_once(mini_coco, table5, log):
    dataset = make_dataset(mini_coco(dict(area=100.0 * 100)), table5)
    metric = KeypointOKSMetric()
    metric.dataset_meta = dataset.metainfo
    for _ in range(2):
        metric.process(None, samples_of(dataset))
        metrics = metric.evaluate(1)
    assert metrics['coco/AP (M)'] == -1 and metrics['coco/AP (L)'] == 1.0
    warnings = [r.message for r in log.records if 'do not choose a best' in r.message]
    assert len(warnings) == 1 and 'AP (M)' in warnings[0]


def test_duplicates_and_lookalikes_are_removed(mini_coco, table5, tmp_path):
    dataset = make_dataset(mini_coco({}), table5)
    sample = samples_of(dataset)[0]
    lookalike = {**samples_of(dataset, shift=0.1, score=0.5)[0], 'id': 9}
    prefix = str(tmp_path / 'new folder/人')
    evaluate(dataset, [sample, sample, lookalike], outfile_prefix=prefix)
    with open(f'{prefix}.keypoints.json', encoding='utf-8') as file:
        entries = json.load(file, parse_constant=pytest.fail)
    assert len(entries) == 1
    assert entries[0]['score'] == pytest.approx(0.9)
    assert entries[0]['bbox'] == [4, 6, 40, 52]
    assert len(entries[0]['keypoints']) == 15
    evaluate(dataset, [sample, lookalike], outfile_prefix=prefix, nms_thr=None)
    with open(f'{prefix}.keypoints.json', encoding='utf-8') as file:
        assert len(json.load(file)) == 2


def test_format_only(mini_coco, table5, tmp_path):
    dataset = make_dataset(mini_coco({}), table5)
    prefix = str(tmp_path / 'out')
    kwargs = dict(format_only=True, outfile_prefix=prefix)
    assert evaluate(dataset, samples_of(dataset), **kwargs) == {}
    assert (tmp_path / 'out.keypoints.json').is_file()
    with pytest.raises(ValueError, match='needs outfile_prefix'):
        KeypointOKSMetric(format_only=True)


def test_predictions_must_be_finite(mini_coco, table5):
    dataset = make_dataset(mini_coco({}), table5)
    samples = samples_of(dataset)
    samples[0]['pred_instances']['keypoints'][0, 2] = np.nan
    with pytest.raises(ValueError, match=r'image 0: .* not finite'):
        evaluate(dataset, samples)


def test_tensors_and_bottom_up_samples(mini_coco, table5):
    path = mini_coco({}, dict(image_id=0, keypoints=[20, 30, 2] * 5))
    dataset = make_dataset(path, table5)
    first, second = (sample['pred_instances'] for sample in samples_of(dataset))
    both = dict(
        img_id=0,
        id=[0, 1],
        raw_ann_info=dict(ann_file=str(path)),
        pred_instances={
            key: torch.from_numpy(np.concatenate([first[key], second[key]])).double()
            for key in ('keypoints', 'keypoint_scores')
        },
    )
    metric = METRICS.build(dict(type='sapiens2_mm.KeypointOKSMetric'))
    metric.dataset_meta = dataset.metainfo
    metric.process(None, [both])
    assert metric.evaluate(1)['coco/AP'] == 1.0


TWO_PROCESSES = """
import json, sys
import torch.distributed as dist
from mmengine.dataset import DefaultSampler
sys.path.insert(0, sys.argv[1])
import importlib.util
spec = importlib.util.spec_from_file_location('helpers', sys.argv[2])
helpers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(helpers)
from pathlib import Path
folder = Path(sys.argv[3])
dist.init_process_group('gloo')
table = json.loads((folder / 'table.json').read_text())
table['keypoint_info'] = {int(k): v for k, v in table['keypoint_info'].items()}
dataset = helpers.make_dataset(folder / 'annotations.json', table)
samples = helpers.samples_of(dataset)
for number, sample in enumerate(samples):
    sample['pred_instances']['keypoints'] = (
        sample['pred_instances']['keypoints'] + number
    )
metric = helpers.KeypointOKSMetric()
metric.dataset_meta = dataset.metainfo
mine = list(DefaultSampler(samples, shuffle=False, round_up=True))
assert len(mine) == -(-len(samples) // dist.get_world_size())
metric.process(None, [samples[index] for index in mine])
metrics = metric.evaluate(len(samples))
if dist.get_rank() == 0:
    (folder / f'metrics{dist.get_world_size()}.json').write_text(json.dumps(metrics))
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_two_processes_equal_one(mini_coco, table5, tmp_path, repo_dir):
    mini_coco(*[{}] * 5)
    (tmp_path / 'table.json').write_text(json.dumps(table5))
    script = tmp_path / 'script.py'
    script.write_text(textwrap.dedent(TWO_PROCESSES))
    env = {**os.environ, 'OMP_NUM_THREADS': '1', 'MASTER_ADDR': '127.0.0.1'}
    for world_size in (1, 2):
        port = str(29500 + os.getpid() % 2000 + world_size)
        processes = [
            subprocess.Popen(
                [sys.executable, str(script), str(repo_dir), __file__, str(tmp_path)],
                env={
                    **env,
                    'MASTER_PORT': port,
                    'RANK': str(rank),
                    'WORLD_SIZE': str(world_size),
                },
            )
            for rank in range(world_size)
        ]
        assert [process.wait(timeout=120) for process in processes] == [0] * world_size
    one, two = (
        json.loads((tmp_path / f'metrics{world_size}.json').read_text())
        for world_size in (1, 2)
    )
    assert 0 < one['coco/AP'] < 1
    assert two == pytest.approx(one, abs=1e-6)
