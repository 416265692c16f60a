import importlib.util
import sys

import torch
from safetensors.torch import load_file

from sapiens2_mm.checkpoint import read_checkpoint
from sapiens2_mm.models.selfsup.export import save_backbone


def test_writes_one_encoder(repo_dir, tmp_path, monkeypatch):
    path = repo_dir / 'tools' / 'export_backbone.py'
    spec = importlib.util.spec_from_file_location('export_backbone_tool', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    weights = {
        'teacher.backbone.cls_token': torch.ones(2),
        'backbone.cls_token': torch.zeros(2),
    }
    torch.save(dict(state_dict=weights), tmp_path / 'iter.pth')
    for which, value in ((None, 1), ('student', 0)):
        argv = ['export', str(tmp_path / 'iter.pth'), str(tmp_path / 'out.safetensors')]
        monkeypatch.setattr(sys, 'argv', argv + (['--which', which] if which else []))
        module.main()
        stored = load_file(tmp_path / 'out.safetensors')
        assert set(stored) == {'cls_token'}
        assert stored['cls_token'].tolist() == [value, value]


def test_what_is_mapped_stays_when_its_file_is_written_anew(tmp_path):
    path = tmp_path / 'encoder.safetensors'
    save_backbone({'teacher.backbone.w': torch.ones(4096)}, path)
    mapped = read_checkpoint(path)['state_dict']  # a view of the file
    save_backbone({'backbone.w': torch.zeros(9)}, path, 'student')
    assert mapped['w'].eq(1).all() and len(mapped['w']) == 4096
    save_backbone({'teacher.backbone.w': mapped['w']}, path)  # onto what it comes from
    assert load_file(path)['w'].eq(1).all()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
