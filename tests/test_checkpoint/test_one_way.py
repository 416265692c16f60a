"""The checkpoint package stands below all others: no circle, open or lazy."""

import ast
import subprocess
import sys

import pytest


def imported(path) -> set[str]:
    """What a file imports anywhere in it, functions too, with absolute names."""
    names = set()
    package = path.with_suffix('').parts[:-1]
    package = package[len(package) - 1 - package[::-1].index('sapiens2_mm') :]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            outer = package[: len(package) + 1 - node.level] if node.level else ()
            names.add('.'.join([*outer, *filter(None, [node.module])]))
    return names


def test_checkpoint_imports_nothing_of_the_other_packages(repo_dir):
    files = sorted((repo_dir / 'sapiens2_mm' / 'checkpoint').rglob('*.py'))
    assert len(files) > 10
    found = {name for path in files for name in imported(path)}
    ours = {name for name in found if name.split('.')[0] == 'sapiens2_mm'}
    assert 'sapiens2_mm.checkpoint.errors' in ours
    assert all(name.startswith('sapiens2_mm.checkpoint') for name in ours), ours


@pytest.mark.parametrize('room, below', [('io', ()), ('layouts', ('io',))])
def test_rooms_import_only_those_below(room, below, repo_dir):
    package = 'sapiens2_mm.checkpoint'
    files = (repo_dir / 'sapiens2_mm' / 'checkpoint' / room).glob('*.py')
    found = {name for path in files for name in imported(path)}
    allowed = tuple(f'{package}.{name}' for name in ('errors', room, *below))
    ours = {name for name in found if name.startswith(package)}
    assert all(name.startswith(allowed) for name in ours), ours


def test_checkpoint_is_imported_without_models():
    code = """
import sys
import sapiens2_mm.checkpoint, sapiens2_mm.checkpoint.layouts.convert
print(sorted(m for m in sys.modules if m.startswith('sapiens2_mm.models')))
"""
    result = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True
    )
    assert result.stdout == '[]\n'
