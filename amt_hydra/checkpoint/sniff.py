"""Says in words what a file is that is not a zip archive, from its first bytes, and a folder, from its names."""

from collections.abc import Iterable

# torch's legacy magic number 0x1950a86a20f9469cfc6c, pickled with protocol 2 (and, seldom, another).
_LEGACY = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."

_RESAVE = "load it once with torch.load and save it again with torch.save"

_STARTS = (
    (b"\x89HDF\r\n", "an HDF5 file, not a checkpoint of torch"),
    (b"\x93NUMPY", "an array of numpy, not a checkpoint of torch"),
    (b"\x1f\x8b", "packed with gzip: unpack it with gunzip first"),
    (b"BZh", "packed with bzip2: unpack it with bunzip2 first"),
    (b"\xfd7zXZ", "packed with xz: unpack it with unxz first"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd: unpack it with unzstd first"),
    (b"version https://git-lfs", "a git-lfs pointer, not the file itself: run git lfs pull"),
    (b"GGUF", "a GGUF file, not a checkpoint of torch"),
    (b"{", "a JSON text, not a checkpoint"),
)
_SHARDS = (".metadata", "latest", "checkpoint", "zero_to_fp32.py")
_SHARD_STARTS = ("zero_pp_rank_", "bf16_zero_pp_rank_", "mp_rank_", "global_step")
_HTML = (b"<!doctype html", b"<html", b"<?xml")


def describe(head: bytes, size: int) -> str:
    """Return what the file is, for the user; `head` is its first 512 bytes, `size` all of them."""
    cases = (
        (size == 0, "empty: 0 bytes, as a full disk or a killed writer leaves it"),
        (_LEGACY in head[:32], f"legacy (non-zip) format of torch before 1.6: {_RESAVE}"),
        (
            head[257:262] == b"ustar",
            f"legacy (non-zip) format, a tar archive of torch before 0.1.10, or another: {_RESAVE}",
        ),
        (head.lstrip().lower().startswith(_HTML), "a web page, not a checkpoint: the download was answered with one"),
        (_is_safetensors(head, size), "a safetensors file: weights only, no step, no optimizer state"),
        *((head.startswith(start), words) for start, words in _STARTS),
        (b"PK\x03\x04".startswith(head), f"cut short: only {size} bytes"),
        (
            not head.strip(b"\0"),
            f"damaged: {size} bytes, zeros at their beginning, as a crash or a lost block leaves them",
        ),
        (head[:1] == b"\x80" and head[1:2] <= b"\x05", "a bare pickle, not a checkpoint of torch.save"),
        (True, "not a checkpoint: it does not begin as a zip archive does"),
    )
    return next(words for holds, words in cases if holds)


def describe_folder(names: Iterable[str]) -> str:
    """Return what a folder is that holds these names: DeepSpeed and FSDP write a checkpoint as one."""
    if any(name in _SHARDS or name.startswith(_SHARD_STARTS) or name.endswith(".distcp") for name in names):
        return "a folder: a sharded (DeepSpeed or FSDP) checkpoint is to be consolidated into one file first"
    return "a folder, not a file"


def _is_safetensors(head: bytes, size: int) -> bool:
    """A header length of 8 bytes, then the header as JSON."""
    return head[8:10] == b'{"' and int.from_bytes(head[:8], "little") <= size
