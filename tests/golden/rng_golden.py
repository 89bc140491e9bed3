"""Prints the golden random numbers of tests/core/random_test.cpp, as C++.

Philox 4x32-10 from its paper (Salmon et al. 2011), the inverse normal distribution from Python's
own statistics module, and the whole numbers by exact arithmetic: nothing is shared with the library.
Needs nothing but Python 3.8 or later. Run: python3 tests/golden/rng_golden.py
"""

from statistics import NormalDist

MASK = 0xFFFFFFFF


def philox(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK, (p0 >> 32) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


def draws(seed, stream=0):
    """The stream's 32-bit numbers: the counter is (block, stream), the key is the seed."""
    block = 0
    while True:
        yield from philox((block & MASK, block >> 32, stream & MASK, stream >> 32),
                          (seed & MASK, seed >> 32))
        block += 1


def counter_of(words, key):
    """The counter that philox answers with these words: each of its rounds can be undone."""
    c0, c1, c2, c3 = words
    inverse0, inverse1 = pow(0xD2511F53, -1, 2**32), pow(0xCD9E8D57, -1, 2**32)
    for n in reversed(range(10)):
        k0, k1 = (key[0] + n * 0x9E3779B9) & MASK, (key[1] + n * 0xBB67AE85) & MASK
        b0, b2 = c3 * inverse0 & MASK, c1 * inverse1 & MASK
        c0, c1, c2, c3 = b0, c0 ^ (0xCD9E8D57 * b2 >> 32) ^ k0, b2, c2 ^ (0xD2511F53 * b0 >> 32) ^ k1
    return c0, c1, c2, c3


def place_of(high, low):
    """A block and a stream of seed 1 that begin with these two words; the block's number is small
    enough for the position of its draws to fit 64 bits."""
    for third in range(1000):
        c0, c1, c2, c3 = counter_of((high, low, third, 0), (1, 0))
        if c1 < 2**30:
            assert philox((c0, c1, c2, c3), (1, 0)) == (high, low, third, 0)
            return c0 | c1 << 32, c2 | c3 << 32
    raise AssertionError("no such place")


def normal(bits):
    high, low = next(bits), next(bits)
    return NormalDist().inv_cdf((((high << 32 | low) >> 12) + 0.5) / 2**52)


def below(bits, n):
    while True:
        product = n * next(bits)
        if product % 2**32 >= 2**32 % n:
            return product >> 32


def permutation(bits, n):
    order = list(range(n))
    for i in range(n, 1, -1):
        j = below(bits, i)
        order[i - 1], order[j] = order[j], order[i - 1]
    return order


SEED, STREAM = 0x0123456789ABCDEF, 0xFEDCBA9876543210

if __name__ == "__main__":
    for counter, key in (((0,) * 4, (0,) * 2), ((MASK,) * 4, (MASK,) * 2),
                         ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0))):
        print("philox", " ".join(f"{word:08x}" for word in philox(counter, key)))
    bits = draws(SEED, STREAM)
    print("words", ", ".join(f"0x{next(bits):08X}" for _ in range(6)))
    bits = draws(1)
    print("normals", ", ".join(repr(normal(bits)) for _ in range(4)))
    for high, low in ((0, 0), (0, 0x04000000), (0, 0xF0000000), (1, 0), (MASK, 0xFFFF0000), (MASK, MASK)):
        block, stream = place_of(high, low)
        print(f"tail {{0x{block:016X}, 0x{stream:016X}, {normal(iter((high, low)))!r}}},")
    bits = draws(3)
    print("below 10", [below(bits, 10) for _ in range(12)])
    bits = draws(3)
    print("below 3 * 2^30", [below(bits, 3 << 30) for _ in range(6)])
    print("permutation", permutation(draws(5), 12))
