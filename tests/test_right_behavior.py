"""The table of right behaviors names tests that exist, and counts their results."""

import ast

import pytest
from right_behavior import TESTS, behaviors, results, row

ROWS = [pair for rows in behaviors().values() for pair in rows.items()]


@pytest.mark.parametrize(('behavior', 'ids'), ROWS, ids=[pair[0] for pair in ROWS])
def test_tests_exist(behavior, ids):
    assert ids
    for node in ids:
        path, _, name = node.partition('::')
        tree = ast.parse((TESTS / path).read_text())
        functions = {x.name for x in ast.walk(tree) if isinstance(x, ast.FunctionDef)}
        assert name in functions or not name


def test_results_of_a_report(tmp_path):
    report = tmp_path / 'report.xml'
    report.write_text(
        '<testsuites><testsuite>'
        '<testcase classname="tests.test_a.test_b" name="test_c[1]"/>'
        '<testcase classname="tests.test_a.test_b" name="test_c[2]"><error/></testcase>'
        '<testcase classname="tests.test_a.test_b" name="test_cd"/>'
        '</testsuite></testsuites>'
    )
    found = results(str(report))
    node = 'test_a/test_b.py::test_c'
    assert row('x', [node], found) == f'| x | {node} | 1 error, 1 passed |'
    assert row('x', ['test_a/test_b.py'], found).endswith('| 1 error, 2 passed |')
    assert row('x', ['test_b.py'], found).endswith('| not run |')
