"""A short run of the fuzz; the long one is ``python -m fuzz.run --number 2000``."""

import pytest
from fuzz.run import run

for host in ('mmpose', 'mmseg', 'mmpretrain'):
    pytest.importorskip(host)


@pytest.mark.slow
def test_spoiled_data_load_or_are_refused(tmp_path):
    counts, wrong = run(range(200), tmp_path)
    assert not wrong
    assert counts['loaded'] > 20 and counts['refused'] > 50
