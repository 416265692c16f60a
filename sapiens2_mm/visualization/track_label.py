"""Numbers of people who are followed through a video."""

import colorsys

import cv2
import numpy as np


def track_color(number: int) -> tuple[int, int, int]:
    """RGB color of a person's number; neighbors are far apart."""
    hue = number * 0.618034 % 1  # the golden ratio
    red, green, blue = colorsys.hsv_to_rgb(hue, 0.8, 1)
    return round(255 * red), round(255 * green), round(255 * blue)


def draw_number(
    image: np.ndarray, number: int, corner: list[int], color: tuple[int, int, int]
) -> None:
    """Write a person's number on a tag in the upper left corner of its box.

    Args:
        image: (H, W, 3) uint8 RGB, is changed.
        number: to write.
        corner: (x, y) of the box.
        color: RGB, of the tag.
    """
    font, scale = cv2.FONT_HERSHEY_SIMPLEX, max(0.4, max(image.shape[:2]) / 1000)
    (width, height), _ = cv2.getTextSize(str(number), font, scale, 1)
    x, y = max(corner[0], 0), max(corner[1], 0)
    cv2.rectangle(image, (x, y), (x + width + 5, y + height + 5), color, cv2.FILLED)
    ink = (0, 0, 0) if np.dot(color, (0.299, 0.587, 0.114)) > 128 else (255,) * 3
    place = (x + 3, y + height + 2)
    cv2.putText(image, str(number), place, font, scale, ink, 1, cv2.LINE_AA)
