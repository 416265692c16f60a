import importlib.util
import json
import math

import cv2
import pytest

pytest.importorskip('mmpretrain')
pytest.importorskip('anny')


@pytest.mark.slow
def test_quick_comparison(repo_dir, tmp_path):
    path = repo_dir / 'tools' / 'pretrain_evidence.py'
    spec = importlib.util.spec_from_file_location('pretrain_evidence', path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.main([str(tmp_path), '--quick'])

    result = json.loads((tmp_path / 'result.json').read_text())
    metrics = result['metrics']
    arms = ['reconstruction', 'joint', 'joint, contrast off']
    assert list(metrics) == [
        'no input',
        'raw patches',
        'random',
        *arms,
        'joint, teacher',
    ]
    tasks = ['pose', 'seg', 'normal', 'pointmap', 'albedo']
    for row, shares in metrics.items():
        assert list(shares) == (['1'] if row in (*arms, 'joint, teacher') else ['0'])
        for fractions in shares.values():
            assert list(fractions) == ['0.05', '1']
            for found in fractions.values():
                assert list(found) == tasks
                for value in found.values():
                    assert value['low'] <= value['mean'] <= value['high'] < math.inf
                assert 0 <= found['pose']['mean'] <= 100
                assert 0 < found['normal']['mean'] < 180
    # a probe that sees the pixels beats one that does not; 5 % are two images
    blind, seeing = (metrics[row]['0']['1'] for row in ('no input', 'raw patches'))
    assert seeing['albedo']['mean'] < blind['albedo']['mean']
    assert seeing['seg']['mean'] > blind['seg']['mean']

    for arm in arms:
        trainings = result['training'][arm]
        assert len(trainings) == 2
        for training in trainings:
            step = training['seconds'] / training['steps']
            assert 1 <= training['seconds'] < 1 + 3 * step
    difference = result['differences']['1']['joint - reconstruction']['seg']['mean']
    ends = [
        metrics[arm]['1']['1']['seg']['mean'] for arm in ('joint', 'reconstruction')
    ]
    assert difference == pytest.approx(ends[0] - ends[1])

    table = (tmp_path / 'table.md').read_text()
    assert '| joint - reconstruction |' in table and '| 100 % of labels |' in table
    picture = cv2.imread(str(tmp_path / 'curves.png'))
    assert picture.shape[1] > picture.shape[0] > 300
