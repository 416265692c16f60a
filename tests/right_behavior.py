"""Prints what must stay right, the tests that say so, and their results.

bash tools/run_tests.sh --junitxml=report.xml
.venv/bin/python tests/right_behavior.py report.xml
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import yaml

TESTS = Path(__file__).parent


def behaviors() -> dict[str, dict[str, list[str]]]:
    """Section -> what must stay right -> node ids relative to this folder."""
    return yaml.safe_load((TESTS / 'behaviors.yaml').read_text())


def results(report: str) -> dict[str, str]:
    """Node id relative to this folder -> how it ended, of a JUnit report."""
    found = {}
    for case in ElementTree.parse(report).iter('testcase'):
        path = case.get('classname').removeprefix('tests.').replace('.', '/')
        problems = {child.tag for child in case} - {'system-out', 'system-err'}
        ended = problems.pop() if problems else 'passed'
        found[f'{path}.py::{case.get("name")}'] = ended
    return found


def row(behavior: str, ids: list[str], found: dict[str, str]) -> str:
    """One line of the table; a node id stands for all its cases."""
    ended = Counter(
        result
        for node in ids
        for name, result in found.items()
        if name == node or name.startswith((f'{node}::', f'{node}['))
    )
    counts = ', '.join(f'{number} {name}' for name, number in sorted(ended.items()))
    return f'| {behavior} | {", ".join(ids)} | {counts or "not run"} |'


def main(report: str) -> None:
    found = results(report)
    lines = ['| behavior | tests | result |', '| --- | --- | --- |']
    for section, rows in behaviors().items():
        lines.append(f'| **{section}** | | |')
        lines += [row(behavior, ids, found) for behavior, ids in rows.items()]
    sys.stdout.write('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main(*sys.argv[1:])
