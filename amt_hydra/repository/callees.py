"""Where the calls of a repository lead: the functions of its own that they may run."""

import ast
import builtins
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from amt_hydra.repository.source import Sources
from amt_hydra.repository.units import ModuleUnits, Unit

TEXTS = (b"ArgumentParser", b"parse_args", b"parse_known", b"add_argument")
Meaning = tuple[ModuleUnits | None, str | None]
"""What an imported name means: (module, attribute); attribute None: the module itself."""


class Callees:
    """Resolves names through the imports of a repository. `reached` holds the functions that may run, in order."""

    def __init__(self, sources: Sources, train: Path) -> None:
        self.sources = sources
        self.modules: dict[Path, ModuleUnits] = {}
        self.reached: dict[Unit, None] = {}
        self.changed = False
        self._meant: dict[tuple[ModuleUnits, str, bool], Meaning] = {}
        self.train = self.module(train, script=True)
        # A train.py that parses nothing itself may leave it to any module; else only those that speak of argparse.
        self._eager = not any(text in self.train.source.data for text in TEXTS)
        self.reach(self.train.units)

    def module(self, path: Path, *, script: bool = False) -> ModuleUnits:
        """Return a module cut into units. Raises KeyError where it cannot be read."""
        if path not in self.modules:
            source = self.sources.parsed(path)
            if source is None:
                raise KeyError(path)
            self.modules[path] = ModuleUnits(source, script=script)
        return self.modules[path]

    def reach(self, units: Sequence[Unit]) -> None:
        """Note that units may run."""
        for unit in units:
            # What stands inside a function may be called by anyone it is handed to; what stands in a module may not.
            for inner in nested(unit) if unit is not unit.module.top else (unit,):
                if inner not in self.reached:
                    self.reached[inner] = None
                    self.changed = True

    def targets(self, call: ast.Call, unit: Unit, *, carrying: bool = False) -> Sequence[Unit]:
        """Return the repository's own functions that a call may run. `carrying`: it hands a followed value over."""
        func = call.func
        if isinstance(func, ast.Name):
            return self._named(func.id, unit, carrying)
        if not isinstance(func, ast.Attribute):
            return []
        if isinstance(func.value, ast.Name):
            found = self._member(func.value.id, func.attr, unit, carrying)
            if found:
                return found
        return self._methods(func.attr) if carrying else []

    def _named(self, name: str, unit: Unit, carrying: bool) -> Sequence[Unit]:
        found = self._callable(unit.module, name, carrying)
        if not found:
            module, attribute = self.imported(unit.module, name, carrying)
            if module is not None and attribute is not None:
                found = self._callable(module, attribute, carrying)
        return found

    def _member(self, owner: str, name: str, unit: Unit, carrying: bool) -> Sequence[Unit]:
        """Resolve owner.name(…) where owner is self, a class or a module."""
        if owner in ("self", "cls"):
            found = unit.module.functions.get((class_of(unit), name))
            return [found] if found else []
        if owner in unit.module.classes:
            found = unit.module.functions.get((owner, name))
            return [found] if found else []
        module, attribute = self.imported(unit.module, owner, carrying)
        if module is None:
            return []
        if attribute is None:
            return self._callable(module, name, carrying)
        found = module.functions.get((attribute, name))
        return [found] if found else []

    def _callable(self, module: ModuleUnits, name: str, carrying: bool, hops: int = 0) -> list[Unit]:
        """Return the function of this name in a module, or the constructor that the class of this name has."""
        if name not in module.classes:
            found = module.functions.get((None, name))
            return [found] if found else []
        own = module.functions.get((name, "__init__"))
        if own is not None or hops > 10:
            return [own] if own is not None else []
        for base in module.classes[name].bases:
            text = ast.unparse(base)
            other, attribute = (module, text) if text in module.classes else self.imported(module, text, carrying)
            if other is not None and attribute is not None and attribute in other.classes:
                return self._callable(other, attribute, carrying, hops + 1)
        return []

    def _methods(self, name: str) -> list[Unit]:
        """Return every method of this name in the repository: the object it is called on is not known."""
        wanted = f"def {name}(".encode()
        found: list[Unit] = []
        for source in self.sources.walk():
            if wanted in source.data:
                with contextlib.suppress(KeyError):
                    units = self.module(source.path).functions.items()
                    found.extend(unit for (owner, n), unit in units if owner is not None and n == name)
        return found

    def imported(self, module: ModuleUnits, name: str, carrying: bool = False) -> Meaning:
        """Return what an imported name means; (None, None) where it is not the repository's own."""
        key = (module, name, carrying)
        if key not in self._meant:
            self._meant[key] = (None, None)  # for a circle of imports
            if name in module.imports:
                self._meant[key] = self._look_up(module, *module.imports[name], carrying)
            elif module.stars and not hasattr(builtins, name):
                self._meant[key] = self._look_in_stars(module, name, carrying)
            if carrying:
                self._meant[module, name, False] = self._meant[key]  # the module is open now
        return self._meant[key]

    def _look_up(self, module: ModuleUnits, dotted: str, level: int, attribute: str | None, carrying: bool) -> Meaning:
        importer = module.source.path
        if attribute is not None:
            inner = self.sources.resolve(importer, f"{dotted}.{attribute}" if dotted else attribute, level)
            if inner is not None:
                return self._opened(inner, carrying), None
        path = self.sources.resolve(importer, dotted, level)
        return (self._opened(path, carrying), attribute) if path is not None else (None, None)

    def _look_in_stars(self, module: ModuleUnits, name: str, carrying: bool) -> Meaning:
        for dotted, level in module.stars:
            path = self.sources.resolve(module.source.path, dotted, level)
            other = self._opened(path, carrying) if path is not None else None
            if other is not None and name in other.top.names:
                return other, name
        return None, None

    def _opened(self, path: Path, carrying: bool) -> ModuleUnits | None:
        if path not in self.modules and not carrying and not self._eager:
            source = self.sources.load(path)
            if source is None or not any(text in source.data for text in TEXTS):
                return None
        try:
            module = self.module(path)
        except KeyError:
            return None
        self.reach([module.top])
        return module


def nested(unit: Unit) -> Iterator[Unit]:
    """Yield a unit and the functions within it."""
    yield unit
    for other in unit.module.units:
        if other.parent is unit:
            yield from nested(other)


def class_of(unit: Unit) -> str | None:
    """Return the class that `self` belongs to: the unit's own, or that of the method around it."""
    here: Unit | None = unit
    while here is not None and here.owner is None:
        here = here.parent
    return here.owner if here is not None else None
