"""Hostile files do nothing but give one clear error, whichever way they come in."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# What the ways write into the folder they are given.
WRITTEN = {'run', 'ours.safetensors', 'hf'}
# Some differ from honest files in nothing that is used.
HARMLESS = ('runs: ', 'zips: ', 'old_files: something', 'safetensors: ')


@pytest.fixture(scope='module')
def results(tmp_path_factory):
    """Name -> what ``hostile_run.py`` says about the file."""
    folder = tmp_path_factory.mktemp('hostile')
    command = [sys.executable, str(TESTS / 'hostile_run.py'), str(folder)]
    env = {**os.environ, 'PYTHONPATH': str(TESTS.parent), 'OMP_NUM_THREADS': '1'}
    run = subprocess.run(command, capture_output=True, text=True, cwd=TESTS, env=env)
    assert run.returncode == 0, run.stderr[-2000:]
    rows = run.stdout.splitlines()
    lines = [json.loads(row) for row in rows if row.startswith('{')]
    return {line['name']: line for line in lines}


def is_clear(said: str) -> bool:
    kinds = ('CheckpointError: ', 'FileNotFoundError: ', 'ValueError: Sapiens2: ')
    return said.startswith(kinds) and len(said) < 4000 and '\x1b' not in said


@pytest.mark.slow
def test_hostile_files_do_nothing(results):
    honest = results.pop('honest')
    assert set(honest['ways'].values()) == {'loaded'}
    kinds = Counter(name.partition(':')[0] for name in results)
    assert len(results) >= 300 and min(kinds.values()) >= 12, kinds
    failed = {n: r['failed'] for n, r in results.items() if 'failed' in r}
    assert not failed  # no crash, no hang, no memory or time beyond the limits
    acted = {n: set(r['seen']) - set(honest['seen']) for n, r in results.items()}
    assert not {n: actions for n, actions in acted.items() if actions}
    made = {n: {Path(p).name for p in r['made']} - WRITTEN for n, r in results.items()}
    assert not {n: files for n, files in made.items() if files}
    for name, result in results.items():
        for way, said in result['ways'].items():
            assert said == 'loaded' or is_clear(said), (name, way, said)
        if 'loaded' in result['ways'].values():
            assert name.startswith(HARMLESS), name
    assert sum(set(r['ways'].values()) == {'loaded'} for r in results.values()) < 30
