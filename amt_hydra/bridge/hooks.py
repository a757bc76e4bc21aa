"""Acts when a module is imported: nothing is imported here that train.py does not import itself."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from typing import Any, Callable


class Finder(importlib.abc.MetaPathFinder):
    """Passes every search on to the finders behind it, and puts its own loader around those of interest."""

    def __init__(self) -> None:
        self.after: dict[str, list[Callable[[Any], None]]] = {}
        """By a module's name, what gets the module once it is there."""
        self.sources: dict[str, Callable[[bytes, str], Any]] = {}
        """By the real path of a file, what makes code of its source and path."""

    def install(self) -> None:
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        spec = self._found(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        origin = os.path.realpath(spec.origin) if spec.has_location else None
        if origin in self.sources:
            spec.loader = _SourceLoader(name, spec.origin, self.sources[origin])
        elif name in self.after:
            spec.loader = _AfterLoader(spec.loader, self.after[name])
        return spec

    def _found(self, name: str, path: Any, target: Any) -> Any:
        """Return what the finders behind this one find, those of editable installs too."""
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                return spec
        return None


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Compiles a changed source; never from or into a bytecode cache."""

    def __init__(self, name: str, path: Any, compiled: Any) -> None:
        super().__init__(name, path)
        self._compiled = compiled

    def get_code(self, fullname: Any) -> Any:
        return self._compiled(self.get_data(self.path), self.path)


class _AfterLoader(importlib.abc.Loader):
    """Executes a module as ever, then calls functions with it."""

    def __init__(self, loader: Any, functions: Any) -> None:
        self._loader = loader
        self._functions = functions

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader  # to everybody else it is as ever
        self._loader.exec_module(module)
        for function in self._functions:
            function(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
