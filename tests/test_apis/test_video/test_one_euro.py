import numpy as np
import pytest

from sapiens2_mm.apis.video import OneEuroFilter


def test_first_steps_in_closed_form():
    """Rest at 0, then 1 and 3 after 0.1 and 0.3 s: by the formulas of the paper."""
    one = OneEuroFilter(min_cutoff=2.0, beta=0.5, speed_cutoff=1.5)

    def weight(step, cutoff):
        return 2 * np.pi * cutoff * step / (1 + 2 * np.pi * cutoff * step)

    speed_1 = weight(0.1, 1.5) * 10
    first = weight(0.1, 2 + 0.5 * speed_1) * 1
    speed_2 = speed_1 + weight(0.2, 1.5) * ((3 - first) / 0.2 - speed_1)
    second = first + weight(0.2, 2 + 0.5 * speed_2) * (3 - first)
    times, values = (0.0, 0.1, 0.3), (0.0, 1.0, 3.0)
    found = [
        one([[value]], time).item() for value, time in zip(values, times, strict=True)
    ]
    np.testing.assert_allclose(found, [0, first, second], rtol=1e-12)


def test_a_constant_stays():
    one, points = OneEuroFilter(), np.float32([[3, 4], [-5, 1e4]])
    for time in (0, 0.01, 0.5, 20):
        np.testing.assert_allclose(one(points, time), points, rtol=1e-12)


def test_noise_falls_and_movement_is_followed():
    rng = np.random.default_rng(0)
    times = np.arange(300) / 30
    noise = rng.normal(0, 1, (300, 50, 2))
    one = OneEuroFilter()
    calm = np.array([one(n, t, scale=500) for n, t in zip(noise, times, strict=True)])
    assert calm[30:].std() < 0.5 * noise.std()
    one = OneEuroFilter()
    path = np.stack((500 * times, np.zeros(300)), -1)[:, None]  # a size per second
    moved = np.array([one(p, t, scale=500) for p, t in zip(path, times, strict=True)])
    assert np.abs(moved - path)[30:].max() < 10  # half a frame's way


def test_axes_and_units_do_not_matter():
    rng = np.random.default_rng(1)
    points = rng.normal(0, 1, (20, 4, 2))
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    plain, other = OneEuroFilter(), OneEuroFilter()
    for time, values in enumerate(points):
        expected = plain(values, time / 25)
        found = other(7 * values @ turn, time / 25, scale=7)
        np.testing.assert_allclose(found, 7 * expected @ turn, atol=1e-12)


@pytest.mark.parametrize('bad', [1e6, np.nan, np.inf])
def test_invisible_points_do_not_drag(bad):
    """They come back as they are; the next visible one knows the last visible one."""
    with_gap, without = OneEuroFilter(), OneEuroFilter()
    visible = np.array([True, False])
    seen = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert np.array_equal(with_gap(seen, 0.0), without(seen, 0.0))
    guess = np.array([[0.5, 0.0], [bad, 0.0]])
    found = with_gap(guess, 0.1, visible)
    assert np.array_equal(found[1], guess[1], equal_nan=True)
    expected = without(np.array([[0.5, 0.0], [1.0, 1.0]]), 0.1)
    assert np.array_equal(found[0], expected[0])
    last = with_gap(seen + 2, 0.2)
    lone = OneEuroFilter()
    lone(seen[1:], 0.0)
    assert np.array_equal(last[1:], lone(seen[1:] + 2, 0.2))
    never = OneEuroFilter()
    never(guess, 0.0, visible)
    assert np.array_equal(never(seen, 0.1)[1], seen[1])


def test_wrong_parameters():
    for wrong in (dict(min_cutoff=0), dict(beta=-1), dict(speed_cutoff=np.nan)):
        with pytest.raises(ValueError, match=r'cutoffs must be positive .* got'):
            OneEuroFilter(**wrong)
