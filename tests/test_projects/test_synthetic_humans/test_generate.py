"""Settings, resuming and the command line."""

import hashlib
import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from projects.synthetic_humans import environment
from projects.synthetic_humans.__main__ import main, parse_size
from projects.synthetic_humans.generate import Settings, SettingsError, generate

SHIPPED = Path(__file__).parents[2] / 'data' / 'synthetic_humans'


def digests(root: Path) -> dict[str, str]:
    """Hash of every file below a folder."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob('*'))
        if path.is_file()
    }


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        (dict(num_train=-1), 'num_train: expected 0 or more, got -1'),
        (dict(num_val=-2), 'num_val: expected 0 or more, got -2'),
        (dict(seed=-3), 'seed: expected 0 or more, got -3'),
        (dict(num_train=0, num_val=0), 'expected at least 1 sample, got 0'),
        (dict(height=16), 'both sides at least 32 .* got 16x96'),
        (dict(height=200), 'neither more than twice the other, got 200x96'),
    ],
)
def test_settings_out_of_range(values, message):
    good = dict(num_train=1, num_val=1, height=128, width=96, seed=0)
    with pytest.raises(SettingsError, match=message):
        Settings(**good | values)


def test_val_follows_train():
    splits = Settings(3, 2, 128, 96).splits()
    assert list(splits['train']) == [0, 1, 2] and list(splits['val']) == [3, 4]


def test_parse_size():
    assert parse_size('1024x768') == (1024, 768)
    assert parse_size('64X48') == (64, 48)


@pytest.mark.parametrize('text', ['1024', '10x20x30', 'axb', ''])
def test_bad_size_is_explained(text, capsys):
    with pytest.raises(SystemExit):
        main(['out', '--size', text])
    assert 'expected HEIGHTxWIDTH such as 1024x768' in capsys.readouterr().err


def test_missing_package_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, 'find_spec', lambda name: None)
    with pytest.raises(
        ImportError, match=r'needs anny, .*install sapiens2_mm\[synth\]'
    ):
        generate(tmp_path / 'set', Settings(1, 0, 128, 96))
    assert not (tmp_path / 'set').exists()


def test_cache_dir_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv('ANNY_CACHE_DIR', str(tmp_path))
    assert environment.cache_dir() == tmp_path
    assert environment.first_build_pending()
    (tmp_path / 'v1').mkdir()
    (tmp_path / 'v1' / 'build_compact_model_data_0.safetensors').touch()
    assert not environment.first_build_pending()
    monkeypatch.delenv('ANNY_CACHE_DIR')
    assert environment.cache_dir() == Path.home() / '.cache' / 'anny'


@pytest.fixture
def shipped(tmp_path) -> Path:
    """A copy of the shipped samples."""
    pytest.importorskip('anny')
    return Path(shutil.copytree(SHIPPED, tmp_path / 'set'))


def test_complete_set_is_left_alone(shipped):
    before = digests(shipped)
    generate(shipped, Settings(4, 2, 384, 288, seed=131))
    assert digests(shipped) == before == digests(SHIPPED)


def test_other_settings_are_refused(shipped):
    with pytest.raises(SettingsError) as info:
        generate(shipped, Settings(4, 2, 384, 288, seed=7))
    assert 'seed is 131, asked for 7' in str(info.value)
    assert 'num_train' not in str(info.value)
    assert 'use another folder' in str(info.value)
    with pytest.raises(SettingsError, match='num_train is 4, asked for 8'):
        generate(shipped, Settings(8, 2, 384, 288, seed=131))
    assert digests(shipped) == digests(SHIPPED)


def test_other_generator_version_is_refused(shipped):
    path = shipped / 'manifest.json'
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {'generator_version': 0}))
    with pytest.raises(SettingsError, match='generator_version is 0, asked for'):
        generate(shipped, Settings(4, 2, 384, 288, seed=131))


def test_foreign_folder_is_refused(tmp_path):
    pytest.importorskip('anny')
    (tmp_path / 'thesis.txt').write_text('keep me')
    with pytest.raises(SettingsError, match=r'expected an empty folder .* other files'):
        generate(tmp_path, Settings(1, 0, 128, 96))
    assert [p.name for p in tmp_path.iterdir()] == ['thesis.txt']


def test_no_workers_is_refused(tmp_path):
    pytest.importorskip('anny')
    with pytest.raises(SettingsError, match='workers: expected at least 1, got 0'):
        generate(tmp_path / 'set', Settings(1, 0, 128, 96), workers=0)


def test_command_line_reports_settings_errors(shipped, capsys):
    with pytest.raises(SystemExit) as info:
        main([str(shipped), '--num-train', '5'])
    assert info.value.code == 2
    assert 'holds a data set with other settings' in capsys.readouterr().err


def damage(root: Path) -> None:
    """Delete, cut and overwrite files of three samples; drop an annotation file."""
    seg = root / 'seg' / '000000.png'
    seg.rename(seg.with_name('000000.png.partial'))
    normal = root / 'normal' / '000001.png'
    normal.write_bytes(normal.read_bytes()[:-100])
    (root / 'records' / '000002.json').write_text('{"files": {')
    (root / 'annotations' / 'val.json').unlink()


@pytest.mark.slow
def test_equal_bytes_for_any_number_of_workers_and_after_damage(tmp_path):
    pytest.importorskip('anny')
    one, two = tmp_path / 'one', tmp_path / 'two'
    generate(one, Settings(2, 1, 64, 48, seed=5), workers=1)
    main(
        [str(two), '--num-train', '2', '--num-val', '1', '--size', '64x48']
        + ['--seed', '5', '--workers', '2']
    )
    expected = digests(one)
    assert digests(two) == expected
    assert len(expected) == 3 * 6 + 3  # no partial file is left behind
    damage(two)
    untouched = two / 'rgb' / '000000.jpg'
    generate(two, Settings(2, 1, 64, 48, seed=5), workers=1)
    assert digests(two) == expected and untouched.exists()


@pytest.mark.slow
def test_shipped_samples_come_from_this_generator(tmp_path):
    """Decoded, since encoders and float units differ between machines."""
    pytest.importorskip('anny')
    from projects.synthetic_humans.files import encode_images
    from projects.synthetic_humans.sample import Renderer

    files = encode_images(Renderer().render(131, 3, (384, 288)))
    for kind, suffix, same in (('seg', '.png', 0.999), ('depth', '.png', 0.99)):
        found = cv2.imdecode(np.frombuffer(files[kind], np.uint8), -1)
        shipped = cv2.imread(str(SHIPPED / kind / f'000003{suffix}'), -1)
        assert (found == shipped).mean() > same
