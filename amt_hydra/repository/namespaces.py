"""The namespaces of a repository's modules, each worked out once."""

from pathlib import Path

from amt_hydra.repository.namespace import Namespace
from amt_hydra.repository.source import Source, Sources


class Namespaces:
    """The namespaces of modules, each worked out once; they find each other through imports."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._known: dict[Path, Namespace] = {}

    def of(self, source: Source) -> Namespace:
        """Return the namespace of a file that parses."""
        if source.path not in self._known:
            self._known[source.path] = Namespace(source, self._import)
            self._known[source.path].run()
        return self._known[source.path]

    def at(self, path: Path | None, mark: bytes = b"") -> Namespace | None:
        """Return the namespace of a path, or None. Imports are followed only into files whose text has the mark."""
        source = self.sources.parsed(path) if path is not None else None
        if source is None:
            return None
        if not mark:
            return self.of(source)

        def marked(importer: Path, module: str, level: int) -> Namespace | None:
            other = self.sources.resolve(importer, module, level)
            text = self.sources.load(other) if other is not None else None
            return self.at(other) if text is not None and mark in text.data else None

        return Namespace(source, marked).run()

    def _import(self, importer: Path, module: str, level: int) -> Namespace | None:
        return self.at(self.sources.resolve(importer, module, level))
