"""Random body shapes (adults only) and facial expressions."""

from __future__ import annotations

import numpy as np

MIN_ADULT_AGE = 0.62  # anny's age scale: 2/3 is a young adult, 1 is old


def sample_shape(rng: np.random.Generator) -> dict[str, float]:
    """Phenotype values by anny's names; the three ancestries sum to 1."""
    african, asian, caucasian = rng.dirichlet([0.4] * 3)
    return {
        'gender': rng.beta(0.3, 0.3),
        'age': rng.uniform(MIN_ADULT_AGE, 0.95),
        'muscle': rng.uniform(0.35, 0.75),
        'weight': rng.uniform(0.3, 0.75),
        'height': rng.uniform(0.35, 0.7),
        'proportions': rng.uniform(0.4, 0.9),
        'cupsize': rng.uniform(0.3, 0.6),
        'firmness': rng.uniform(0.4, 0.7),
        'african': african,
        'asian': asian,
        'caucasian': caucasian,
    }


def sample_expression(mouth: str, rng: np.random.Generator) -> dict[str, float]:
    """Facial actions by anny's names.

    Args:
        mouth: ``any``, ``smile`` or ``open`` (teeth and tongue visible).
        rng: source of randomness.
    """
    face: dict[str, float] = {}

    def both(name: str, value: float) -> None:
        face[f'{name}Left'] = face[f'{name}Right'] = value

    if mouth == 'open':
        face['jawOpen'] = rng.uniform(0.6, 0.9)
        face['tongueOut'] = rng.uniform(0.15, 0.5)
        both('mouthUpperUp', rng.uniform(0.7, 1))
        both('mouthLowerDown', rng.uniform(0.7, 1))
    else:
        if rng.random() < 0.5:
            face['jawOpen'] = rng.uniform(0.2, 0.9)
        if mouth == 'smile' or rng.random() < 0.4:
            both('mouthSmile', rng.uniform(0.3, 1))
        if rng.random() < 0.4:
            value = rng.uniform(0.3, 1)
            both('mouthUpperUp', value)
            both('mouthLowerDown', value)
    if rng.random() < 0.15:
        both('eyeBlink', rng.uniform(0.3, 1))
    if rng.random() < 0.4:
        face['browInnerUp'] = rng.uniform(0, 1)
    return face
