import json
import logging

import numpy as np
import pytest
import torch
from mmengine.evaluator import Evaluator
from mmengine.logging import MMLogger
from PIL import Image
from processes import run_processes
from safetensors.torch import load_file

from sapiens2_mm.evaluation import Sapiens2IoUMetric
from sapiens2_mm.evaluation.confusion import confusion_matrix
from sapiens2_mm.registry import METRICS

ALL = ('mIoU', 'mDice', 'mFscore')
META = dict(classes=('a', 'b', 'c'), palette=[(1, 2, 3), (250, 0, 9), (7, 70, 170)])


def make_metric(meta=META, **kwargs):
    metric = METRICS.build(dict(type='sapiens2_mm.Sapiens2IoUMetric', **kwargs))
    metric.dataset_meta = meta
    return metric


def sample(pred, label=None, path='x/img.jpg', **meta):
    out = dict(pred_sem_seg=dict(data=torch.as_tensor(pred)[None]), img_path=path)
    if label is not None:
        out['gt_sem_seg'] = dict(data=torch.as_tensor(label)[None])
    return {**out, **meta}


def evaluate(metric, *samples):
    for one in samples:
        metric.process(None, [one])
    return metric.evaluate(len(samples))


def test_equals_the_released_evaluator(data_dir):
    case = load_file(data_dir / 'losses_seg.safetensors')
    values = json.loads((data_dir / 'metrics_seg.json').read_text())['values']
    label = case['in.seg_gt']
    boost = torch.nn.functional.one_hot(label.clamp(max=28), 29).permute(0, 3, 1, 2)
    pred = (case['in.seg_logits'] + 1.5 * boost).argmax(1)
    metric = make_metric(
        dict(classes=[str(i) for i in range(29)]), iou_metrics=ALL, nan_to_num=0
    )
    scores = evaluate(metric, *(sample(p, y) for p, y in zip(pred, label, strict=True)))
    assert scores == pytest.approx(values, abs=1e-4)


@pytest.mark.parametrize('nan_to_num', [None, 0])
def test_equals_mmseg(nan_to_num):
    mmseg = pytest.importorskip('mmseg.evaluation')
    rng = np.random.default_rng(0)
    host = mmseg.IoUMetric(iou_metrics=list(ALL), nan_to_num=nan_to_num)
    host.dataset_meta = META
    samples = [
        sample(rng.integers(0, 2, (7, 5)), rng.choice([0, 1, 255], (7, 5)))
        for _ in range(3)
    ]
    ours = evaluate(make_metric(iou_metrics=ALL, nan_to_num=nan_to_num), *samples)
    assert ours == pytest.approx(evaluate(host, *samples), abs=0.011)


def test_absent_class_by_both_rules():
    label = torch.tensor([[0, 1, 1, 255]])
    pred = torch.tensor([[0, 1, 1, 2]])
    assert evaluate(make_metric(), sample(pred, label))['mIoU'] == 100
    scores = evaluate(make_metric(nan_to_num=0), sample(pred, label))
    assert scores == dict(aAcc=100, mIoU=66.67, mAcc=66.67)


def test_confusion_by_hand():
    label = torch.tensor([[0, 0, 1, 255]])
    pred = torch.tensor([[0, 2, 1, 1]])
    assert confusion_matrix(pred, label, 3).tolist() == [
        [1, 0, 1],
        [0, 1, 0],
        [0, 0, 0],
    ]


def test_counts_stay_exact_beyond_float32(tmp_path):
    path = tmp_path / 'report.json'
    metric = make_metric(dict(classes=('a', 'b')), report_file=str(path))
    metric.compute_metrics([np.array([[2**24 + 1, 1], [0, 2**24 + 1]])] * 3)
    confusion = json.loads(path.read_text())['confusion']
    assert confusion == [[3 * 2**24 + 3, 3], [0, 3 * 2**24 + 3]]


def test_one_pixel_and_one_row_images():
    metric = make_metric()
    scores = evaluate(metric, sample([[1]], [[1]]), sample([[0, 0, 2]], [[0, 0, 2]]))
    assert scores['aAcc'] == 100


def log_lines():
    lines = []
    logger = MMLogger.get_current_instance()
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger.addHandler(handler)
    return lines, lambda: logger.removeHandler(handler)


def test_table_and_warning_about_absent_classes():
    lines, stop = log_lines()
    label = torch.tensor([[0, 0, 255, 255]])  # foreground stored as 255
    evaluate(make_metric(), sample([[0, 0, 0, 0]], label))
    stop()
    text = '\n'.join(lines)
    assert 'never occur in the ground truth (left out of the means unless pred' in text
    assert "['b', 'c']; label 255 is ignored" in text
    assert '|   a   | 100.0 | 100.0 |' in text


def test_report_file(tmp_path):
    path = tmp_path / 'deep' / 'report.json'
    metric = make_metric(report_file=str(path))
    evaluate(metric, sample([[0, 1]], [[0, 0]]))
    report = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert report['confusion'] == [[1, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert report['classes']['a'] == dict(IoU=50.0, Acc=50.0)
    assert report['classes']['c'] == dict(IoU=None, Acc=None)
    assert report['summary']['aAcc'] == 50.0


def test_format_only_writes_palette_images(tmp_path):
    out = tmp_path / 'тест é'
    metric = make_metric(output_dir=str(out), format_only=True)
    pred = [[0, 1], [2, 1]]
    assert evaluate(metric, sample(pred, path='a/人 1.jpg')) == {}
    image = Image.open(out / '人 1.png')
    assert image.mode == 'P'
    assert np.array_equal(np.asarray(image), pred)
    colors = np.asarray(image.convert('RGB'))
    assert np.array_equal(colors, np.array(META['palette'])[np.array(pred)])


def test_written_ids_undo_reduce_zero_label(tmp_path):
    metric = make_metric(output_dir=str(tmp_path), format_only=True)
    evaluate(metric, sample([[0, 2]], path='i.png', reduce_zero_label=True))
    image = Image.open(tmp_path / 'i.png')
    assert np.asarray(image).tolist() == [[1, 3]]
    assert image.convert('RGB').getpixel((1, 0)) == (7, 70, 170)


def test_scores_and_label_maps_together(tmp_path):
    metric = make_metric(output_dir=str(tmp_path))
    assert evaluate(metric, sample([[0]], [[0]]))['aAcc'] == 100
    assert (tmp_path / 'img.png').exists()


def test_errors(tmp_path):
    with pytest.raises(ValueError, match=r"must be of .*got \['mAP'\]"):
        Sapiens2IoUMetric('mAP')
    with pytest.raises(ValueError, match=r'format_only .*needs output_dir'):
        Sapiens2IoUMetric(format_only=True)
    metric = make_metric()
    with pytest.raises(ValueError, match=r'labels are missing for x/img.jpg.*format_o'):
        metric.process(None, [sample([[0]])])
    with pytest.raises(ValueError, match=r'img.jpg: label values .*0 to 2 or 255.*\[9'):
        metric.process(None, [sample([[0]], [[9]])])
    for wrong in (3, 9, -1):
        message = rf'img.jpg: prediction values must be 0 to 2, got \[{wrong}\]'
        with pytest.raises(ValueError, match=message):
            metric.process(None, [sample([[wrong]], [[0]])])
    with pytest.raises(ValueError, match=r'\(1, 1\) and label \(1, 2\) differ'):
        metric.process(None, [sample([[0]], [[0, 0]])])
    metric = make_metric(output_dir=str(tmp_path), format_only=True)
    metric.process(None, [sample([[0]], path='a/i.jpg')])
    metric.process(None, [sample([[0]], path='a/i.jpg')])  # a padded sample
    with pytest.raises(ValueError, match=r'a/i.jpg and b/i.jpg would both be i.png'):
        metric.process(None, [sample([[0]], path='b/i.jpg')])


def _five_samples():
    rng = np.random.default_rng(3)
    return [
        sample(rng.integers(0, 3, (6, 4)), rng.choice([0, 1, 2, 255], (6, 4)))
        for _ in range(5)
    ]


def _rank(rank, folder):
    metric = make_metric(iou_metrics=ALL)
    samples = _five_samples()
    for index in (0, 2, 4) if rank == 0 else (1, 3, 0):  # the last one pads
        metric.process(None, [samples[index]])
    scores = metric.evaluate(5)
    if rank == 0:
        (folder / 'scores.json').write_text(json.dumps(scores))


@pytest.mark.slow
def test_two_processes_equal_one(tmp_path):
    run_processes(_rank, tmp_path, 2)
    one = evaluate(make_metric(iou_metrics=ALL), *_five_samples())
    assert json.loads((tmp_path / 'scores.json').read_text()) == one


def test_works_under_an_evaluator():
    evaluator = Evaluator([make_metric(prefix='part')])
    evaluator.dataset_meta = META
    evaluator.process([sample([[0]], [[0]])])
    assert evaluator.evaluate(1)['part/aAcc'] == 100


def test_merged_classes_count_as_one(tmp_path):
    """Left arm and hand as one part: what lies in either is right."""
    meta = dict(classes=('background', 'arm', 'hand', 'hair'))
    path = tmp_path / 'report.json'
    metric = make_metric(
        meta, merged_classes=dict(limb=('arm', 'hand')), report_file=str(path)
    )
    # truth: four pixels of arm (for all of the limb), one of hair
    pred, label = [[0, 1, 2, 2, 3]], [[1, 1, 1, 1, 3]]
    scores = evaluate(metric, sample(np.array(pred), np.array(label)))
    assert scores == dict(aAcc=80.0, mIoU=58.33, mAcc=87.5)  # 0, 3/4, 1; 3/4, 1
    report = json.loads(path.read_text())
    assert list(report['classes']) == ['background', 'limb', 'hair']
    assert report['confusion'] == [[0, 0, 0], [1, 3, 0], [0, 0, 1]]
    for wrong in (dict(limb=('arm', 'leg')), dict(a=('arm',), b=('arm',))):
        metric = make_metric(meta, merged_classes=wrong)
        with pytest.raises(ValueError, match='merged_classes: expected each name onc'):
            evaluate(metric, sample(np.array(pred), np.array(label)))
