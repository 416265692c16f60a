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
    """Write a person's number into the upper left corner of its box."""
    font, scale = cv2.FONT_HERSHEY_SIMPLEX, max(0.4, max(image.shape[:2]) / 1600)
    (_, height), _ = cv2.getTextSize(str(number), font, scale, 1)
    x, y = max(corner[0], 0) + 2, max(corner[1], 0) + height + 2
    for ink, thickness in (((0, 0, 0), 3), (color, 1)):
        place = (x, y)
        cv2.putText(image, str(number), place, font, scale, ink, thickness, cv2.LINE_AA)
