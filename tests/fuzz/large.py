"""Writes inputs of up to 4 MB, which a fuzzer that begins with small ones does not reach:
large.py TARGET FOLDER"""

import json
import os
import struct
import sys

SIZE = 4 << 20


def safetensors():
    def header(text, data=b""):
        return struct.pack("<Q", len(text)) + text + data

    entry = '"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    count = SIZE // 60
    yield header(("{" + ",".join(entry % i for i in range(count)) + "}").encode())
    yield header(b"[" * (SIZE - 8))
    yield header(b'{"a":[' + b"1," * (SIZE // 2 - 20) + b"1]}")
    yield header(('{"' + "n" * (SIZE - 100) + '":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}').encode())
    data = bytes(SIZE - 200)
    yield header(json.dumps({"a": {"dtype": "F32", "shape": [len(data) // 4],
                                   "data_offsets": [0, len(data)]}}).encode(), data)


def config():
    yield b"[" * SIZE
    yield ('{"model":{' + ",".join(f'"k{i}":{i}' for i in range(SIZE // 20)) + "}}").encode()
    yield ('{"data":"' + "x" * (SIZE - 20) + '"}').encode()


def tokenizer_json():
    for kind in ("char", "word"):
        tokens = [chr(0x10000 + i) for i in range(SIZE // 10)]
        yield json.dumps({"kind": kind, "tokens": tokens}, ensure_ascii=False).encode()
    yield json.dumps({"kind": "word", "tokens": ["a" * (SIZE - 50)]}).encode()


def log():
    line = '{"event":"eval","step":%d,"val_loss":1.5,"train_loss":1.5,"lr":0.1}\n'
    yield "".join(line % i for i in range(SIZE // 75)).encode()
    yield b"{" * SIZE
    yield b"\n" * SIZE


def task_file():
    yield "".join(f"{i}\t{i}\n" for i in range(SIZE // 16)).encode()
    yield b"a\tb\n" + b"c" * (SIZE // 2) + b"\t" + b"d" * (SIZE // 2 - 10) + b"\n"
    yield b"\n" * (SIZE - 1) + b"x"


def tokenizer():
    words = " ".join(f"w{i}x" for i in range(SIZE // 9)).encode()
    for kind in (b"\0", b"\1", b"\2"):
        yield kind + words
    yield b"\2" + b"a" * (SIZE - 1)
    yield b"\0" + "".join(chr(0x4E00 + i % 20000) for i in range(SIZE // 3 - 1)).encode()


def selection():
    yield b"0," * (SIZE // 2) + b"1\n1:2\n0.0"
    yield b"0\n" + b":" * (SIZE - 10) + b"\n0.0"


def sequences():
    yield b"\x07\x01" + bytes(i * i // 7 % 251 for i in range(SIZE // 4))
    yield b"\x3f\x00" + b"ab" * (SIZE // 4)


def command_line():
    yield b"train\0" + b"--lr\0" * (SIZE // 5 - 2)
    yield b"eval\0" + b"x" * (SIZE - 6)
    yield b"gradcheck\0" + b"a\0" * (SIZE // 200)


def main():
    target, folder = sys.argv[1:]
    for i, data in enumerate(globals()[target]()):
        with open(os.path.join(folder, f"large{i}"), "wb") as file:
            file.write(data[:SIZE])


main()
