"""The map of folders in sapiens2_mm/README.md."""

import re


def test_every_path_exists_and_every_folder_is_named(repo_dir):
    package = repo_dir / 'sapiens2_mm'
    text = (package / 'README.md').read_text(encoding='utf-8')
    paths = re.findall(r'[`(]([\w/]+(?:/|\.\w+))[`)]', text)
    assert len(paths) > 25
    assert [path for path in paths if not (package / path).exists()] == []
    folders = {path.parent.relative_to(package) for path in package.rglob('*.py')}
    tops = {folder.parts[0] for folder in folders if folder.parts}
    assert tops <= {path.split('/')[0] for path in paths}
