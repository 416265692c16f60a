"""Stratified traits: which sample shows what, decided before anything is drawn.

Independent draws leave rare classes (bare feet, socks, teeth, tongue) out of
small sets. Every block of eight consecutive samples therefore holds the same
eight strata in an order that depends on the seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Traits:
    """What one sample must show.

    Attributes:
        framing: ``full|upper|head``.
        feet: ``bare|sock|shoe|shoe+sock``.
        mouth: ``any|smile|open``; ``open`` shows both rows of teeth and the tongue.
        glasses, cap, belt: whether worn.
    """

    framing: str
    feet: str
    mouth: str
    glasses: bool
    cap: bool
    belt: bool


# framing, feet, mouth, glasses
_STRATA = (
    ('full', 'bare', 'any', False),
    ('full', 'sock', 'any', False),
    ('full', 'shoe', 'any', True),
    ('full', 'shoe+sock', 'any', False),
    ('upper', 'shoe', 'smile', True),
    ('upper', 'bare', 'any', False),
    ('head', 'shoe', 'open', False),
    ('head', 'shoe', 'smile', True),
)
BLOCK = len(_STRATA)


def sample_traits(seed: int, index: int) -> Traits:
    """Traits of sample ``index``: a function of the two numbers alone."""
    block, place = divmod(index, BLOCK)
    rng = np.random.default_rng([seed, block, 1])
    order = rng.permutation(BLOCK)
    caps, belts = rng.permutation(BLOCK), rng.permutation(BLOCK)
    framing, feet, mouth, glasses = _STRATA[order[place]]
    return Traits(
        framing=framing,
        feet=feet,
        mouth=mouth,
        glasses=glasses,
        cap=bool(caps[place] < 2),
        belt=bool(belts[place] < 3),
    )
