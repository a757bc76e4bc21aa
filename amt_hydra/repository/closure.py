"""The files that train.py runs: itself, and what it imports, directly or through others.

Imports are found lexically: parsing every file would take longer than all the rest. One that stands in a string counts
too; what is asked of these files is asked of their syntax trees.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from amt_hydra.repository.source import Source, Sources

_WORD = re.compile(rb"import")  # found first, and its line then: a pattern for the whole line is ten times slower
_IMPORT = re.compile(
    rb"[ \t]*(?:from[ \t]+(\.*)[ \t]*([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]*))"
)
_NAMED = re.compile(rb"(?:import_module|__import__)\(\s*([\"'])(\.*)([\w.]+)\1")
_ELSEWHERE = (b"import_module(", b"__import__(", b"run_path(", b"run_module(", b"spec_from_file_location(", b" exec(")
"""What may run files that no import statement names."""


@dataclass(frozen=True, slots=True)
class Training:
    """What runs in a training."""

    files: tuple[Source, ...]
    """train.py first; all files where its imports cannot be followed."""
    roots: frozenset[str]
    """The first part of the name of every module that is imported: "torch"."""


def find_training(sources: Sources, train: Path) -> Training:
    """Follow the imports of train.py."""
    found: dict[Path, Source] = {}
    roots: set[str] = set()
    queue, whole, added_paths = [train], True, False
    for path in queue:  # it grows as it is gone through
        source = sources.load(path) if path not in found else None
        if source is None:
            continue
        found[path] = source
        added_paths |= b"sys.path" in source.data
        named = sum(map(source.data.count, _ELSEWHERE))
        literal = [(dots, module, b"") for _, dots, module in _NAMED.findall(source.data)] if named else []
        whole &= named <= len(literal)
        for dots, module, names in (*_imports(source.data), *literal):
            name = module.decode()
            roots.add(name.partition(".")[0])
            inner = _resolve(sources, path, name, len(dots), names)
            queue += inner
            whole &= bool(inner) or not added_paths or not _is_here(sources, name)
        if not whole:
            queue += [other.path for other in sources.walk()]
            whole = True
    return Training(tuple(found.values()), frozenset(roots))


def surely_imported(sources: Sources, train: Path) -> set[Path]:
    """Return the files that are imported whatever happens: by statements that stand in no function, branch or try."""
    found = [train]
    for path in found:  # it grows as it is gone through
        source = sources.parsed(path)
        for statement in source.tree.body if source is not None and source.tree is not None else ():
            for module, level, names in _stated(statement):
                found += [p for p in _resolve(sources, path, module, level, names.encode()) if p not in found]
    return set(found)


def _stated(statement: ast.stmt) -> list[tuple[str, int, str]]:
    """Return the module, the leading dots and the names of an import statement."""
    if isinstance(statement, ast.Import):
        return [(alias.name, 0, "") for alias in statement.names]
    if isinstance(statement, ast.ImportFrom):
        return [(statement.module or "", statement.level, ", ".join(alias.name for alias in statement.names))]
    return []


def _imports(data: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield the leading dots, the module and the names of each import statement."""
    for dots, module, names, modules in _statements(data):
        if module or dots:
            yield dots, module, names
        for part in _listed(modules):
            yield b"", part.encode(), b""


def _statements(data: bytes) -> Iterator[tuple[bytes, bytes, bytes, bytes]]:
    end = 0
    for word in _WORD.finditer(data):
        match = _IMPORT.match(data, data.rfind(b"\n", 0, word.start()) + 1) if word.start() >= end else None
        if match is not None:
            end = match.end()
            yield match[1] or b"", match[2] or b"", match[3] or b"", match[4] or b""


def _listed(text: bytes) -> list[str]:
    text = re.sub(rb"#[^\n]*", b"", text).strip(b"() \t\r\n\\")
    parts = [part.split() for part in text.decode("utf-8", "replace").split(",")]
    return [part[0] for part in parts if part and re.fullmatch(r"[\w.]+|\*", part[0])]


def _resolve(sources: Sources, importer: Path, module: str, level: int, names: bytes) -> list[Path]:
    """Return the files that an import runs: the module's own, and the __init__.py of the packages around it."""
    path = sources.resolve(importer, module, level) if module or level else None
    found = [path] if path is not None else []
    if path is None or path.name == "__init__.py":  # from utils import metrics
        inner = [sources.resolve(importer, f"{module}.{part}" if module else part, level) for part in _listed(names)]
        found += [p for p in inner if p is not None]
    for inside in list(found) if "." in module or level or names else ():
        folder = inside.parent
        while folder not in (sources.folder, folder.parent) and "__init__.py" in sources.listing(folder):
            found.append(folder / "__init__.py")
            folder = folder.parent
    return found


def _is_here(sources: Sources, module: str) -> bool:
    """Whether a module that no import path of ours finds has the name of a file of the repository."""
    wanted = module.split(".", maxsplit=1)[0]
    return any(wanted in (source.path.stem, source.path.parent.name) for source in sources.walk())
