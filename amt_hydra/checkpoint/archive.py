"""The zip archive that torch.save writes: its members, and the content of the small ones. Tensors are never read.

A reader of its own, since the standard library's makes a large object of each member and imports every compressor,
which takes longer than all the rest. Everything is read at its place (pread). Nothing is extracted: a member's name is
only a name.
"""

import os
import struct
import zlib

from amt_hydra.checkpoint.limits import MAX_DIRECTORY, MAX_MEMBERS, MAX_PICKLE, UnreadableError

_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_CENTRAL = struct.Struct(
    "<4x4x2H4x3L3H8xL"
)  # flags, method, CRC, packed, size, lengths of name, extra, comment; offset
_LOCAL = struct.Struct("<26x2H")
_ALL_ONES = 0xFFFFFFFF  # the true value stands in the zip64 record
_STORED, _DEFLATED = 0, 8
_CHUNK = 1 << 20


class Member:
    """One member, as the central directory describes it; sizes and offset in bytes."""

    __slots__ = ("crc", "encrypted", "method", "offset", "packed", "size")

    def __init__(self, offset: int, packed: int, size: int, method: int, crc: int, encrypted: bool) -> None:
        self.offset = offset
        self.packed = packed
        self.size = size
        self.method = method
        self.crc = crc
        self.encrypted = encrypted


class Archive:
    """The members of an open file, by name without the folder that torch.save puts them in."""

    def __init__(self, fd: int, size: int) -> None:
        """Read the central directory; raise UnreadableError where the file isn't a whole archive."""
        self._fd = fd
        self._size = size
        start, length, count = self._directory()
        if count > MAX_MEMBERS or length > MAX_DIRECTORY:
            raise UnreadableError(f"refused: an archive of {count} members, far beyond what torch.save writes")
        self.folder = ""
        """Within which torch.save puts every member: the file's stem, with a slash."""
        self.members = self._members(os.pread(fd, length, start), start, count)

    def _directory(self) -> tuple[int, int, int]:
        """Find the central directory: (offset, length, number of members)."""
        tail_start = max(0, self._size - 65535 - _END.size)
        tail = os.pread(self._fd, self._size - tail_start, tail_start)
        at = tail.rfind(b"PK\5\6", 0, max(0, len(tail) - _END.size + 4))
        if at < 0:
            raise UnreadableError(
                f"cut short: {self._size} bytes, and the archive's end (its central directory) is not among them; "
                "its writer was killed, the disk was full, or it is still being written"
            )
        _, _, _, _, count, length, start, _ = _END.unpack_from(tail, at)
        locator = os.pread(self._fd, _END64_LOCATOR.size, max(0, tail_start + at - _END64_LOCATOR.size))
        if len(locator) == _END64_LOCATOR.size and locator.startswith(b"PK\6\7"):
            record = os.pread(self._fd, _END64.size, min(_END64_LOCATOR.unpack(locator)[2], self._size))
            if len(record) < _END64.size or not record.startswith(b"PK\6\6"):
                raise UnreadableError("damaged: its zip64 end record is not where the file says")
            *_, count, length, start = _END64.unpack(record)
        if start + length > tail_start + at:
            raise UnreadableError(f"cut short: {self._size} bytes, and its members would reach beyond them")
        return start, length, count

    def _members(self, directory: bytes, end: int, count: int) -> dict[str, Member]:
        """Parse the central directory; members lie before offset `end` and do not overlap."""
        members: dict[str, Member] = {}
        at = taken = 0
        for _ in range(count):
            if directory[at : at + 4] != b"PK\1\2" or at + _CENTRAL.size > len(directory):
                raise UnreadableError("damaged: its central directory does not read as one")
            flags, method, crc, packed, size, name, extra, comment, offset = _CENTRAL.unpack_from(directory, at)
            name_at = at + _CENTRAL.size
            extra_at = name_at + name
            at = extra_at + extra + comment
            if _ALL_ONES in (packed, size, offset):
                size, packed, offset = _zip64(directory[extra_at : extra_at + extra], [size, packed, offset])
            taken += packed + _LOCAL.size + name
            if offset + packed + _LOCAL.size > end or taken > end:
                raise UnreadableError(f"damaged: its members would take more than the {end} bytes that there are")
            path = str(directory[name_at:extra_at], "utf-8", "replace")
            if not members:
                self.folder = path.partition("/")[0] + "/"
            members[path.removeprefix(self.folder)] = Member(offset, packed, size, method, crc, flags & 1 == 1)
        return members

    def content(self, name: str) -> bytearray:
        """Return all of a small member; raise UnreadableError where it is missing, too large, cut or damaged."""
        member = self.members.get(name)
        if member is None:
            raise UnreadableError(f"damaged: it has no {name}")
        if member.size > MAX_PICKLE:
            raise UnreadableError(
                f"refused: its {name} takes {member.size >> 20} MiB; at most {MAX_PICKLE >> 20} are read"
            )
        if member.encrypted or member.method not in (_STORED, _DEFLATED):
            raise UnreadableError(f"damaged: its {name} is encrypted, or packed in a way that torch does not read")
        data = self._unpacked(self._data_at(name, member), member)
        if len(data) < member.size:
            raise UnreadableError(f"cut short: of the {member.size} bytes of its {name} only {len(data)} are there")
        # A CRC of 0 stands for "not computed" (torch.serialization.set_crc32_options(False)).
        if member.crc not in (0, zlib.crc32(data)):
            raise UnreadableError(f"damaged: the CRC of its {name} does not match")
        return data

    def _unpacked(self, at: int, member: Member) -> bytearray:
        """Read up to `member.size` bytes, however much the packed data would yield."""
        inflate = zlib.decompressobj(-15) if member.method == _DEFLATED else None
        data = bytearray()
        end = at + member.packed
        while at < end and len(data) < member.size:
            packed = os.pread(self._fd, min(_CHUNK, end - at), at)
            at += len(packed)
            if not packed:
                break
            try:
                data += inflate.decompress(packed, member.size - len(data)) if inflate else packed
            except zlib.error as error:
                raise UnreadableError("damaged: its pickle does not unpack") from error
        return data

    def _data_at(self, name: str, member: Member) -> int:
        header = os.pread(self._fd, _LOCAL.size, member.offset)
        if len(header) < _LOCAL.size or not header.startswith(b"PK\3\4"):
            raise UnreadableError(f"damaged: its {name} is not where the central directory says")
        start: int = member.offset + _LOCAL.size + sum(_LOCAL.unpack(header))  # the lengths of name and extra field
        if start + member.packed > self._size:
            raise UnreadableError(f"damaged: its {name} reaches beyond the end of the file")
        return start

    def read(self, name: str, offset: int, size: int) -> bytes | None:
        """Return `size` bytes of a stored member from `offset` on, or None where they are not to be had."""
        member = self.members.get(name)
        if member is None or member.method != _STORED or offset < 0 or offset + size > member.size:
            return None
        return os.pread(self._fd, size, self._data_at(name, member) + offset)


def _zip64(extra: bytes, values: list[int]) -> list[int]:
    """Replace each value that is all ones by the next number of the zip64 extra field."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            numbers = iter(struct.unpack_from(f"<{min(length, len(extra) - at - 4) // 8}Q", extra, at + 4))
            return [next(numbers, value) if value == _ALL_ONES else value for value in values]
        at += 4 + length
    return values
