import importlib.util
import sys

import torch
from safetensors.torch import load_file


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
