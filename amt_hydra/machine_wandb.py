"""Whether W&B would find credentials, by wandb's own rules (those of its wbauth and settings code); it is not imported.

Presence only: a value is looked at to see whether there is one of the right shape, and dropped.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_DEFAULT_HOSTS = ("api.wandb.ai", "api.forge.coreweave.com")
"""The server where none is set. Newer versions of wandb call it by the second name and fall back on the netrc entry of
the first; older ones know only that."""
_MODES = {
    "online": "online",
    "run": "online",
    "shared": "online",
    "offline": "offline",
    "dryrun": "offline",
    "disabled": "disabled",
}
_FALSE = ("", "0", "false", "no", "n", "off", "f")


@dataclass(frozen=True, slots=True)
class Wandb:
    """Whether W&B would find credentials. Their values are never kept."""

    credentials: bool
    """Whether there are any."""
    source: str
    """Where they are, or where they were looked for in vain."""
    mode: str
    """One of online, offline, disabled; from the environment or a settings file."""
    problem: str = ""
    """A sentence on why wandb would refuse to start, or ignore what was meant; empty where it would do neither."""


def read_wandb(environ: Mapping[str, str], cwd: Path | None = None) -> Wandb:
    """Return what wandb finds for a process with `environ` in `cwd`. Never raises."""
    home = _home(environ)
    settings = _settings(environ, home, cwd)
    hosts = _hosts(environ.get("WANDB_BASE_URL") or settings.get("base_url") or "")
    found, source, problem = _credentials(environ, home, hosts)
    if not found and "WANDB_API_KEY" not in environ and settings.get("api_key"):
        found, source, problem = True, "a wandb settings file", ""
    mode = environ.get("WANDB_MODE", settings.get("mode") or "online")
    return Wandb(found, source, _MODES.get(mode, "online"), problem or _setting_problem(environ, mode))


def _credentials(environ: Mapping[str, str], home: Path | None, hosts: tuple[str, ...]) -> tuple[bool, str, str]:
    """Return whether there are any, where, and what is wrong with them."""
    if environ.get("WANDB_API_KEY"):
        problem = ""
        if environ.get("WANDB_IDENTITY_TOKEN_FILE"):
            problem = "WANDB_API_KEY and WANDB_IDENTITY_TOKEN_FILE are both set, which wandb refuses."
        elif not _is_key(environ["WANDB_API_KEY"]):
            problem = "WANDB_API_KEY does not have the form of a key, and wandb refuses it."
        return True, "WANDB_API_KEY", problem
    if environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        there = _is_there(Path(environ["WANDB_IDENTITY_TOKEN_FILE"]))
        problem = "" if there else "The file that WANDB_IDENTITY_TOKEN_FILE names is not there."
        return there, "WANDB_IDENTITY_TOKEN_FILE", problem
    return _netrc(environ, home, hosts)


def _is_key(value: str) -> bool:
    """Return whether wandb takes this for a key: 40 or more characters after an optional prefix, or a JWT."""
    return bool(re.fullmatch(r"(?:[^-]*-)?[\w-]{40,}|[\w-]+\.[\w-]+\.[\w-]+", value))


def _netrc(environ: Mapping[str, str], home: Path | None, hosts: tuple[str, ...]) -> tuple[bool, str, str]:
    import netrc

    path = _netrc_path(environ, home)
    nothing = "none: no WANDB_API_KEY, no WANDB_IDENTITY_TOKEN_FILE, "
    if path is None:
        return False, f"{nothing}no home folder to look for a netrc file in", ""
    try:
        entries = netrc.netrc(path)
    except FileNotFoundError:
        return False, f"{nothing}no {path}", ""
    except netrc.NetrcParseError as error:  # its message may hold a part of the secret
        return False, f"{nothing}and {path} makes no sense in line {error.lineno}", ""
    except (OSError, ValueError) as error:
        return False, f"{nothing}and {path} cannot be read ({type(error).__name__})", ""
    for host in hosts:
        entry = entries.authenticators(host)
        if entry and entry[2]:
            problem = (
                "" if _is_key(entry[2]) else f"The entry in {path} does not have the form of a key: wandb refuses it."
            )
            return True, f"{path}: {host}", problem
    return False, f"{nothing}no entry for {' or '.join(hosts)} in {path}", ""


def _netrc_path(environ: Mapping[str, str], home: Path | None) -> Path | None:
    if environ.get("NETRC"):
        return _expand(environ["NETRC"], home)
    if home is None:
        return None
    windows = home / "_netrc"
    return windows if not _is_there(home / ".netrc") and _is_there(windows) else home / ".netrc"


def _hosts(base_url: str) -> tuple[str, ...]:
    """Return the netrc entries that are looked for, the first one first."""
    host = urlsplit(base_url).netloc if _is_url(base_url) else ""
    if not host or host.removeprefix("api.") == "forge.coreweave.com":
        return _DEFAULT_HOSTS
    return (host,)


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _setting_problem(environ: Mapping[str, str], mode: str) -> str:
    if mode not in _MODES:
        return f"The W&B mode {mode!r} is none of {', '.join(_MODES)}: wandb refuses to start."
    if not _is_url(environ.get("WANDB_BASE_URL", "https://api.wandb.ai")):
        return "WANDB_BASE_URL is no http(s) address: wandb refuses to start."
    if mode in ("online", "run") and environ.get("WANDB_DISABLED", "").lower() not in _FALSE:
        return "WANDB_DISABLED is set, which wandb no longer reads: WANDB_MODE=disabled is what it takes."
    return ""


def _settings(environ: Mapping[str, str], home: Path | None, cwd: Path | None) -> dict[str, str]:
    """Return what wandb's settings files say: the user's, then that of the folder."""
    import configparser

    files = []
    if environ.get("WANDB_CONFIG_DIR"):
        files.append(_expand(environ["WANDB_CONFIG_DIR"], home) / "settings")
    elif home is not None:
        files.append(home / ".config" / "wandb" / "settings")
    folder = _expand(environ["WANDB_DIR"], home) if environ.get("WANDB_DIR") else cwd
    if folder is not None:
        files.append(folder / (".wandb" if _is_there(folder / ".wandb") else "wandb") / "settings")
    found: dict[str, str] = {}
    for file in files:
        parser = configparser.ConfigParser()
        try:
            parser.read(file)
            found.update(parser.items("default"))
        except (OSError, ValueError, configparser.Error):  # wandb warns, and goes on without
            continue
    return found


def _home(environ: Mapping[str, str]) -> Path | None:
    if environ.get("HOME"):
        return Path(environ["HOME"])
    try:
        import pwd

        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):  # a container may run us as a user that it does not know
        return None


def _expand(path: str, home: Path | None) -> Path:
    return home / path[2:] if home is not None and path.startswith("~/") else Path(path)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder that we may not enter
        return False
