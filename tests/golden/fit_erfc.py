"""Fits the polynomial that src/kernels/gelu.cpp uses for the normal distribution in float:

    erfc(z) exp(z^2) = t (c0 + c1 t + ... + c8 t^8),   t = 1 / (1 + z/2),   z from 0 to 9.3

by least squares of the relative error at Chebyshev points, and prints the coefficients and the largest error.
Run: /usr/bin/python3 tests/golden/fit_erfc.py
"""
import math

import numpy as np

DEGREE, Z_MAX = 8, 9.3


def target(z):
    return np.array([math.erfc(v) for v in z]) * np.exp(z * z)


low = 1 / (1 + Z_MAX / 2)
t = (1 + low) / 2 + (1 - low) / 2 * np.cos(np.pi * (np.arange(4000) + 0.5) / 4000)
z = 2 * (1 / t - 1)
y = target(z)
columns = t[:, None] ** np.arange(1, DEGREE + 2)
c = np.linalg.lstsq(columns / y[:, None], np.ones_like(y), rcond=None)[0]
for i, v in enumerate(c):
    print(f"c{i} = {v:.9e}")
print("largest relative error", np.abs(columns @ c / y - 1).max())
