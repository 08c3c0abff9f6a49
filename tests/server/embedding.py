"""Which unit vector stands for a text? Texts that share words are near, on every machine the same."""

import base64
import zlib
from collections.abc import Sequence

import numpy as np

from tests.server.words import terms


def embed(text: str, dimension: int) -> list[float]:
    """Each term adds 1 or -1 at the place that its hash names; of length 1, also for a text without words."""
    vector = np.zeros(dimension)
    for term in terms(text):
        hashed = zlib.crc32(term.encode())
        vector[hashed % dimension] += 1 if hashed >> 31 else -1
    length = float(np.linalg.norm(vector))
    if length == 0:
        vector[0], length = 1.0, 1.0
    return [float(value) for value in (vector / length).round(7)]


def packed(vector: Sequence[float]) -> str:
    """As OpenAI's client asks for by default: little-endian 32-bit floats in base64."""
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()
