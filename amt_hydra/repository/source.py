"""The Python files of a repository: found by walking, each read once, and parsed once where a reader asks for it."""

import ast
import os
import warnings
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

from amt_hydra.repository.syntax import Index

MAX_BYTES = 5 * 1024 * 1024
MAX_FILES = 2000
MAX_ENTRIES = 100_000
"""Most directory entries looked at: a data set kept beside the code must not hold a plan up."""
SKIPPED = frozenset({"__pycache__", "site-packages", "node_modules", "venv"}) | frozenset(
    {"data", "logs", "lightning_logs", "wandb", "outputs", "checkpoints"}
)
"""Folders of no interest, unless they are Python packages."""


N = TypeVar("N", bound=ast.AST)


class Source:
    """One file. `tree` is parsed when first asked for and None where it does not parse; `error` then says why."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        self.data = data
        self.error: SyntaxError | None = None
        self._tree: ast.Module | None = None
        self._indexed: Index | None = None
        self._lines: list[bytes] | None = None

    @property
    def tree(self) -> ast.Module | None:
        """The module's syntax tree, or None."""
        if self._tree is None and self.error is None:
            try:
                self._tree = parse(self.data, str(self.path))
            except SyntaxError as error:
                self.error = error
        return self._tree

    def nodes(self, kind: type[N]) -> list[N]:
        """Return every node of a kind, breadth first."""
        return self._index().kinds.get(kind, [])  # type: ignore[return-value] # sorted by exactly this

    @property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node around each node."""
        return self._index().parents

    def _index(self) -> "Index":
        """Go through the tree, once for all readers."""
        if self._indexed is None:
            self._indexed = Index(self.tree)
        return self._indexed

    def text(self, node: ast.expr | ast.stmt) -> str:
        """Return the source of a node as written, or normalised to one line where it spans several."""
        if node.end_lineno != node.lineno:
            try:
                return ast.unparse(node)
            except RecursionError:
                return "…"
        if self._lines is None:
            self._lines = _lines(self.data)
        return self._lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode("utf-8", "replace")


def parse(data: bytes, name: str) -> ast.Module:
    """Parse source bytes as Python would (byte order mark, encoding cookie); every failure is a SyntaxError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "invalid escape sequence" of a stranger's file is not our user's concern
            return ast.parse(data, name)
    except SyntaxError:
        raise
    except (ValueError, RecursionError, MemoryError, LookupError) as error:
        raise SyntaxError(f"{type(error).__name__}: {error}", (name, 1, 0, "")) from error


def _lines(data: bytes) -> list[bytes]:
    """Split as the parser does, in the UTF-8 that its column offsets count."""
    import io
    import tokenize

    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    text = data.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n")
    return [line.encode() for line in text.split("\n")]


class Sources:
    """The files beneath the folder of train.py. `problems` collects, in words, what could not be read."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.folder = folder
        self.problems: list[str] = []
        self.unparsed: dict[Path, SyntaxError] = {}
        self._files: list[Path] | None = None
        self._loaded: dict[Path, Source | None] = {}
        self._resolved: dict[tuple[str, str, int], Path | None] = {}
        self._listed: dict[str, frozenset[str]] = {}

    def place(self, path: Path, line: int) -> str:
        """Name a place for a message: the path as seen from the root."""
        return f"{path.relative_to(self.root) if path.is_relative_to(self.root) else path}:{line}"

    def problem(self, source: Source, node: ast.expr | ast.stmt, words: str) -> None:
        """Note what could not be decided at a place."""
        self.problems.append(f"{self.place(source.path, node.lineno)}: {words}")

    def load(self, path: Path) -> Source | None:
        """Return a file, read once; None where it cannot be read, which is noted."""
        if path not in self._loaded:
            self._loaded[path] = self._read(path)
        return self._loaded[path]

    def _read(self, path: Path) -> Source | None:
        name = self.place(path, 0).removesuffix(":0")
        try:
            size = path.stat().st_size
            if size > MAX_BYTES:
                self.problems.append(f"{name}: not read ({size / 1024 / 1024:.0f} MB is no source code)")
                return None
            return Source(path, path.read_bytes())
        except OSError as error:
            self.problems.append(f"{name}: not read ({error.strerror or error})")
            return None

    def parsed(self, path: Path) -> Source | None:
        """Return a file that parses; one that does not is noted once."""
        source = self.load(path)
        if source is None or source.tree is not None:
            return source
        if source.error is not None and path not in self.unparsed:
            self.unparsed[path] = source.error
            self.problems.append(f"{self.place(path, source.error.lineno or 1)}: does not parse ({source.error.msg})")
        return None

    def walk(self) -> Iterator[Source]:
        """Yield every file, those nearest to train.py first."""
        if self._files is None:
            self._files, whole = python_files(self.folder)
            if not whole:
                words = f"too many files; only the first {len(self._files)} Python files were read"
                self.problems.append(f"{self.folder}: {words}")
        for path in self._files:
            source = self.load(path)
            if source is not None:
                yield source

    def resolve(self, importer: Path, module: str, level: int) -> Path | None:
        """Return the file that an import means, or None where it is not the repository's own."""
        key = (os.path.dirname(importer), module, level)  # noqa: PTH120 # Path is slow, often
        if key not in self._resolved:
            self._resolved[key] = self._resolve(importer, module, level)
        return self._resolved[key]

    def _resolve(self, importer: Path, module: str, level: int) -> Path | None:
        bases = [self.folder, importer.parent, self.folder.parent, self.root]
        if level:
            bases = [importer.parents[min(level, len(importer.parents)) - 1]]
        first = module.partition(".")[0]
        for base in dict.fromkeys(map(str, bases)):
            if module and not self.listing(base) & {first, f"{first}.py"}:
                continue  # most imports are foreign, and asking for files takes long
            target = os.path.join(base, *module.split(".")) if module else base  # noqa: PTH118 # Path is slow, often
            for candidate in (f"{target}.py", f"{target}{os.sep}__init__.py"):
                if os.path.isfile(candidate) and (module or candidate.endswith("__init__.py")):  # noqa: PTH113
                    return Path(candidate)
        return None

    def listing(self, folder: str | Path) -> frozenset[str]:
        """Return the names in a folder; none where it cannot be read."""
        folder = str(folder)
        if folder not in self._listed:
            try:
                self._listed[folder] = frozenset(os.listdir(folder))  # noqa: PTH208 # names are all that is wanted
            except OSError:
                self._listed[folder] = frozenset()
        return self._listed[folder]


def python_files(folder: Path) -> tuple[list[Path], bool]:
    """Return the Python files beneath a folder, breadth first, and whether that is all of them.

    Links to folders are followed, each real folder once: code is sometimes linked in, and so are whole file systems.
    """
    found: list[Path] = []
    seen: set[tuple[int, int]] = set()
    queue = deque([folder])
    entries = 0
    while queue:
        here = queue.popleft()
        try:
            status = here.stat()
            with os.scandir(here) as scan:
                listing = sorted(islice(scan, MAX_ENTRIES + 1 - entries), key=lambda entry: entry.name)
        except OSError:
            continue
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        for entry in listing:
            entries += 1
            if entries > MAX_ENTRIES or len(found) >= MAX_FILES:
                return found, False
            path = here / entry.name
            if entry.name.endswith(".py") and entry.is_file():
                found.append(path)
            elif not entry.name.startswith(".") and entry.is_dir() and _is_wanted(path):
                queue.append(path)
    return found, True


def _is_wanted(folder: Path) -> bool:
    return folder.name not in SKIPPED or (folder / "__init__.py").is_file()
