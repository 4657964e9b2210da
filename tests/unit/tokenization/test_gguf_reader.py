from __future__ import annotations

import struct
import time
from pathlib import Path

import numpy as np
import pytest

from interlock.errors import InterlockError
from interlock.tokenization.gguf_reader import read_metadata


def string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def header(num_keys: int, *, version: int = 3, order: str = "<") -> bytes:
    return b"GGUF" + struct.pack(f"{order}IQQ", version, 0, num_keys)


def one(value: bytes, *, version: int = 3) -> bytes:
    return header(1, version=version) + string(b"key") + value


SCALARS = [
    (struct.pack("<IB", 0, 200), 200),
    (struct.pack("<Ib", 1, -5), -5),
    (struct.pack("<IH", 2, 60_000), 60_000),
    (struct.pack("<Ih", 3, -300), -300),
    (struct.pack("<II", 4, 2**32 - 1), 2**32 - 1),
    (struct.pack("<Ii", 5, -(2**31)), -(2**31)),
    (struct.pack("<If", 6, 0.5), 0.5),
    (struct.pack("<I?", 7, True), True),
    (struct.pack("<I", 8) + string("Grüße".encode()), "Grüße"),
    (struct.pack("<IQ", 10, 2**64 - 1), 2**64 - 1),
    (struct.pack("<Iq", 11, -(2**63)), -(2**63)),
    (struct.pack("<Id", 12, 1e300), 1e300),
]


@pytest.mark.parametrize(("encoded", "value"), SCALARS)
@pytest.mark.parametrize("version", [2, 3])
def test_every_scalar_type_is_read(tmp_path: Path, encoded: bytes, value: object, version: int) -> None:
    path = tmp_path / "file.gguf"
    path.write_bytes(one(encoded, version=version))
    read = read_metadata(path)["key"]
    assert read == value
    assert type(read) is type(value)


def test_arrays_of_numbers_and_strings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file.gguf"
    numbers = struct.pack("<IIQ3f", 9, 6, 3, 1.0, -2.0, 0.5)
    strings = struct.pack("<IIQ", 9, 8, 2) + string(b"a") + string("ö".encode())
    path.write_bytes(header(2) + string(b"n") + numbers + string(b"s") + strings + b"tensor data")
    metadata = read_metadata(path)
    np.testing.assert_array_equal(metadata["n"], np.array([1.0, -2.0, 0.5], np.float32))
    assert metadata["s"] == ["a", "ö"]


DAMAGED = [
    (b"", "not a GGUF file"),
    (b"GG", "not a GGUF file"),
    (b"PK\x03\x04 a zip archive", "not a GGUF file"),
    (b"GGUF", "cut short"),
    (header(1, version=1), "version 1"),
    (header(1, order=">"), "big-endian"),
    (header(2**63), "cut short"),
    (one(struct.pack("<IIQ", 9, 8, 2**60)), "cut short"),
    (one(struct.pack("<IIQ", 9, 0, 2**64 - 1)), "cut short"),
    (one(struct.pack("<IIQQ", 9, 8, 1, 2**64 - 1)), "cut short"),
    (one(struct.pack("<IQ", 8, 2**40)), "cut short"),
    (one(struct.pack("<I", 99) + bytes(16)), "unknown type 99"),
    (one(struct.pack("<IIQ", 9, 9, 1) + bytes(32)), "unknown type 9"),
    (one(struct.pack("<IIQ", 9, 8, 1) + string(b"\xff")), "not UTF-8"),
    (header(1) + string(b"\xff") + struct.pack("<II", 4, 0), "not UTF-8"),
]


@pytest.mark.parametrize(("data", "message"), DAMAGED)
def test_a_damaged_file_is_refused_with_its_reason(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "file.gguf"
    path.write_bytes(data)
    with pytest.raises(InterlockError, match=message) as caught:
        read_metadata(path)
    assert caught.value.code == "invalid_value"
    assert str(path) in caught.value.message


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = header(3) + b"".join(
        string(b"key%d" % index) + value
        for index, value in enumerate(
            [SCALARS[0][0], SCALARS[8][0], struct.pack("<IIQ", 9, 8, 2) + string(b"ab") + string(b"c")]
        )
    )
    path = tmp_path / "file.gguf"
    path.write_bytes(whole)
    assert len(read_metadata(path)) == 3
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(InterlockError):
            read_metadata(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InterlockError, match="No such file"):
        read_metadata(tmp_path / "none.gguf")


def test_a_large_vocabulary_is_read_in_a_fraction_of_a_second(tmp_path: Path) -> None:
    items = b"".join(string(b"token%d" % index) for index in range(150_000))
    path = tmp_path / "file.gguf"
    path.write_bytes(one(struct.pack("<IIQ", 9, 8, 150_000) + items))
    start = time.process_time()
    assert len(read_metadata(path)["key"]) == 150_000
    assert time.process_time() - start < 0.3
