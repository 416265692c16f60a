import importlib.util
import os
import signal
import sys
import tempfile

import pytest
import torch

pytest.importorskip('mmseg')
pytest.importorskip('gradio')

import httpx

from sapiens2_mm.apis import init_model


@pytest.fixture
def app(repo_dir, tmp_path, monkeypatch):
    """``tools/app.py``, its temporary files in ``tmp_path``."""
    spec = importlib.util.spec_from_file_location('app', repo_dir / 'tools' / 'app.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    before = signal.getsignal(signal.SIGTERM)
    yield module
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def run(app, monkeypatch):
    """Runs it until ``stop`` is called in place of the endless wait."""

    def run(stop, *arguments):
        class Event:
            def wait(self):
                stop()

        monkeypatch.setattr(app, 'Event', Event)
        monkeypatch.setattr(sys, 'argv', ['app.py', *map(str, arguments)])
        try:
            return app.main()
        except SystemExit as end:
            return end.code

    return run


def interrupt():
    raise KeyboardInterrupt


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()


@pytest.mark.parametrize('how', [interrupt, terminate])
def test_page_opens_and_leaves_nothing(run, repo_dir, tmp_path, capsys, how):
    (config,) = (repo_dir / 'configs/seg').glob('*tiny*_synthetic-humans-*.py')
    checkpoint = tmp_path / 'seg.pth'
    torch.save(dict(state_dict=init_model(config).state_dict()), checkpoint)
    texts = []

    def stop():
        url = capsys.readouterr().out.split('Open ')[1].split()[0]
        assert url.startswith('http://127.0.0.1:')
        texts.append(httpx.get(url).text)
        assert len([*tmp_path.glob('sapiens2_app_*')]) == 1
        how()

    assert not run(stop, '--model', config, checkpoint)
    assert 'One person fills the picture' in texts[0] and 'Predict' in texts[0]
    assert [path.name for path in tmp_path.iterdir()] == ['seg.pth']


def test_wrong_arguments_are_one_line(run, capsys):
    for arguments, message in (
        ([], 'give --task or --model'),
        (['--model', 'sapiens2-7b_seg'], 'is neither a config file nor the name'),
    ):
        assert run(interrupt, *arguments) == 2
        assert message in capsys.readouterr().err
