"""Members of zip archives that are compressed with Zstandard, as Inspect writes them.

zipfile reads this method, 93 in PKWARE's APPNOTE 6.3.10, only since Python 3.14.
"""

from __future__ import annotations

import struct
import zipfile
import zlib

_ZSTANDARD = 93  # PKWARE's number of the compression method
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
"""The last two numbers are the lengths of the name and of the extra field that follow."""


def read_member(archive: zipfile.ZipFile, member_name: str) -> bytes:
    """Return the content of a member. Raises BadZipFile, OSError and ValueError."""
    info = archive.getinfo(member_name)
    if info.compress_type != _ZSTANDARD:
        return archive.read(member_name)
    import pyarrow as pa

    file = archive.fp
    if file is None:
        raise ValueError("the archive is closed")
    file.seek(info.header_offset)
    header = file.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size:
        raise zipfile.BadZipFile("the archive is cut off")
    *_, name_length, extra_length = _LOCAL_HEADER.unpack(header)
    file.seek(name_length + extra_length, 1)
    compressed = file.read(info.compress_size)
    with pa.CompressedInputStream(pa.BufferReader(compressed), "zstd") as stream:
        # One byte more than there should be, not as many as the stream has.
        content = bytes(stream.read(info.file_size + 1))
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile("its size or checksum is wrong")
    return content
