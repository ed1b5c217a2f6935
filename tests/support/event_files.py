"""Reads event files of TensorBoard: frames of TFRecord with an event each."""

from __future__ import annotations

import struct

from tensorboardX.proto.event_pb2 import Event


def crc32c(data: bytes) -> int:
    """Castagnoli's checksum, bit by bit, masked as TFRecord does it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def events(path) -> list[Event]:
    """The events of a file, each with both checksums checked."""
    data, found = path.read_bytes(), []
    while data:
        (length, length_crc), rest = struct.unpack("<QI", data[:12]), data[12:]
        assert length_crc == crc32c(data[:8])
        body, (crc,) = rest[:length], struct.unpack("<I", rest[length : length + 4])
        assert crc == crc32c(body)
        found.append(Event.FromString(body))
        data = rest[length + 4 :]
    return found
