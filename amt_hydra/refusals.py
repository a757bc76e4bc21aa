"""Why a run must not start under the identity it declares, and each way out as a command to paste."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from amt_hydra.checkpoint import Xray
from amt_hydra.commands import Typed, quote
from amt_hydra.env_switches import FORCE_SCRATCH
from amt_hydra.repository.facts import GoesOn
from amt_hydra.runstate import RunState, describe
from amt_hydra.settings import Mode, Settings

_SHOWN = 8  # checkpoints that a message proposes at most
_GOES_ON: Mapping[GoesOn, str] = {
    "resume": "this would be a resume",
    "warmstart": "it would go on from its weights, at step 0",
    "scratch": "the repository would pass it over, and write over it",
    "unknown": "what the repository makes of it cannot be told from its source",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the decision is taken from."""

    settings: Settings
    state: RunState
    forced: bool
    """AMT_FORCE_SCRATCH is on, as the repository itself would read it."""
    forced_why: str
    resumes: bool
    """fit() gets ckpt_path, by the repository or by the bridge: only then is a resume one."""
    takes_init: bool
    """The repository has a flag for a warm-start checkpoint, or the bridge brings one."""
    goes_on: GoesOn
    """What the repository's own code makes of a last.ckpt, where it is left to it."""
    max_steps: int | None
    """Steps to train to, -1 for no limit, None where it cannot be told."""

    @property
    def in_the_way(self) -> bool:
        """A last.ckpt lies in the experiment's folder, and is not moved aside."""
        return self.state.last is not None and not self.settings.init.overwrite


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why declared and actual identity do not agree, and each way out."""

    message: str
    ways: tuple[str, ...]


def refuse(ways: "Ways") -> Refusal | None:
    """Return why the run must not start as what it declares itself to be; None where it may."""
    rules: Mapping[Mode, Callable[[Facts, Ways], Refusal | None]] = {
        "scratch": _scratch,
        "resume": _resume,
        "warmstart": _warmstart,
    }
    return rules[ways.facts.settings.init.mode](ways.facts, ways)


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways out, each leading where it says. One that this repository does not go is not offered."""

    facts: Facts
    typed: Typed

    def command(self, *new: str, drop: tuple[str, ...] = (), unforced: bool = False) -> str:
        """The command changed; what a config file or the environment sets of `drop` is unset by name."""
        init = self.facts.settings.init
        neutral = {
            "init.ckpt": ("init.ckpt=null", init.ckpt is not None),
            "init.overwrite": ("init.overwrite=false", init.overwrite),
        }
        unset = [word for key, (word, is_set) in neutral.items() if key in drop and is_set and not self.typed.sets(key)]
        if not unforced:
            return self.typed.changed(*new, *unset, drop=drop)
        key = f"extra.env.{FORCE_SCRATCH}"
        if FORCE_SCRATCH in self.facts.settings.extra.env and not self.typed.sets(key):
            unset.append(f"~{key}")
        return f"env -u {FORCE_SCRATCH} " + self.typed.changed(*new, *unset, drop=(*drop, key))

    def elsewhere(self) -> tuple[str, ...]:
        """Another exp_id, where a last.ckpt is in the way."""
        return (f"exp_id={self.facts.state.unused}",) if self.facts.in_the_way else ()

    def scratch(self) -> tuple[str, ...]:
        """Start over: with fresh weights, and what is in the way moved aside."""
        drop = ("init.ckpt",)
        if self.facts.in_the_way and not self.facts.forced:
            return (
                "start over, the old folder is moved aside: "
                + self.command("init=scratch", "init.overwrite=true", drop=drop),
            )
        return (f"scratch: {self.command('init=scratch', drop=drop)}",)

    def resume(self, unforced: bool = False) -> tuple[str, ...]:
        """Go on from last.ckpt, with steps left to train."""
        last, goal = self.facts.state.last, self.facts.max_steps
        if last is None or not self.facts.resumes:
            return ()
        if not last.whole:
            return self.restore()
        more = (f"max_steps={further(last)}",) if no_step_left(last, goal) else ()
        return (
            f"resume: {self.command('init=resume', *more, drop=('init.ckpt', 'init.overwrite'), unforced=unforced)}",
        )

    def warmstart(self, unforced: bool = False) -> tuple[str, ...]:
        """Take the weights of the checkpoint that is given, where it has any."""
        init = self.facts.state.init
        if not self.facts.takes_init or init is None or not init.whole or not init.tensors:
            return ()
        return (f"warm-start: {self.command('init=warmstart', *self.elsewhere(), unforced=unforced)}",)

    def warmstart_from(self, ray: Xray, *new: str) -> tuple[str, ...]:
        """Take the weights of this checkpoint."""
        if not self.facts.takes_init or not ray.tensors:
            return ()
        words = ("init=warmstart", f"init.ckpt={ray.path}", *(new or self.elsewhere()))
        return (f"warm-start from {describe(ray)}: {self.command(*words)}",)

    def nearby(self) -> tuple[str, ...]:
        """Take the weights of one of the whole checkpoints of the project, best first."""
        if not self.facts.takes_init:
            return ()
        ways = [way for ray in self.facts.state.nearby[:_SHOWN] for way in self.warmstart_from(ray)]
        return tuple(ways) or (f"no whole checkpoint was found in {self.facts.state.place.pattern}",)

    def restore(self) -> tuple[str, ...]:
        """Bring a whole last.ckpt back: from the newest whole checkpoint of the experiment."""
        newest, last = self.facts.state.newest, self.facts.state.place.last
        if newest is None:
            return ()
        quoted = [quote(str(p)) for p in (last, last.with_name("last.ckpt.broken"), newest.path)]
        mend = f"mv {quoted[0]} {quoted[1]} && " if self.facts.state.last is not None else ""
        return (f"go on from {describe(newest)}: {mend}cp {quoted[2]} {quoted[0]}",)


def _scratch(facts: Facts, ways: Ways) -> Refusal | None:
    if facts.settings.init.ckpt is not None:
        if facts.forced:
            return _contradiction(facts, ways)
        return Refusal(
            f"init=scratch, but init.ckpt={_given(facts)} would make it a warm-start",
            (*ways.warmstart(), *ways.scratch()),
        )
    if facts.in_the_way and not facts.forced and facts.state.last is not None:
        return Refusal(
            f"init=scratch, but {describe(facts.state.last)} lies in {facts.state.place.checkpoints}: "
            + _GOES_ON[facts.goes_on],
            (
                *ways.resume(),
                f"another experiment: {ways.command(f'exp_id={facts.state.unused}')}",
                *ways.scratch(),
            ),
        )
    return None


def _contradiction(facts: Facts, ways: Ways) -> Refusal:
    given = "an init checkpoint is given" if facts.settings.init.mode == "scratch" else "init=warmstart"
    return Refusal(
        f"{FORCE_SCRATCH} is on ({facts.forced_why}) and {given}: they contradict each other",
        (*ways.warmstart(unforced=True), *ways.scratch()),
    )


def _resume(facts: Facts, ways: Ways) -> Refusal | None:
    last, where = facts.state.last, facts.state.place
    if facts.settings.init.ckpt is not None:
        return Refusal(
            f"init=resume goes on from {where.last}; init.ckpt={_given(facts)} has no place in it",
            (*(ways.resume(unforced=facts.forced) or ways.restore()), *ways.warmstart(facts.forced), *ways.scratch()),
        )
    if facts.settings.init.overwrite:
        return Refusal(
            "init.overwrite=true would move away what init=resume goes on from",
            (*(ways.resume(unforced=facts.forced) or ways.restore()), *ways.scratch()),
        )
    if facts.forced:
        return Refusal(
            f"init=resume, but {FORCE_SCRATCH} is on ({facts.forced_why}): this would be a scratch run",
            (*ways.resume(unforced=True), *ways.scratch()),
        )
    if last is None:
        return Refusal(
            f"init=resume, but there is no last.ckpt in {where.checkpoints}: this would be a scratch run",
            (*ways.restore(), *ways.nearby(), *ways.scratch()),
        )
    if not last.whole:
        return Refusal(
            f"init=resume, but {where.last} is not whole: {last.problem}",
            ways.restore() or (*ways.nearby(), *ways.scratch()),
        )
    if not facts.resumes:
        return Refusal(
            "init=resume, but this repository never passes ckpt_path to fit, and no bridge brings it: "
            + _GOES_ON[facts.goes_on],
            (*ways.warmstart_from(last), *ways.scratch()),
        )
    return _resume_steps(facts, last, ways)


def no_step_left(last: Xray, goal: int | None) -> bool:
    """Whether a resume would train nothing; False where there is no limit, or it cannot be told."""
    return last.global_step is not None and goal is not None and goal != -1 and goal <= last.global_step


def further(last: Xray) -> int:
    """A max_steps that trains as many steps again."""
    return 2 * max(last.global_step or 0, 1)


def _resume_steps(facts: Facts, last: Xray, ways: Ways) -> Refusal | None:
    if not no_step_left(last, facts.max_steps):
        return None
    return Refusal(
        f"init=resume, but last.ckpt is at global_step {last.global_step} and max_steps is {facts.max_steps}: the "
        "trainer would return at once, having trained nothing",
        (f"train on: {ways.command(f'max_steps={further(last)}')}", *ways.warmstart_from(last)),
    )


def _warmstart(facts: Facts, ways: Ways) -> Refusal | None:
    init, last = facts.state.init, facts.state.last
    if facts.forced:
        return _contradiction(facts, ways)
    if not facts.takes_init:
        return Refusal(
            "init=warmstart, but this repository has no flag for an init checkpoint, and no bridge brings one: it "
            "would be a scratch run",
            ways.scratch(),
        )
    if init is None:
        named = f" ({facts.state.init_from} has none)" if facts.state.init_from else ""
        return Refusal(f"init=warmstart, but no checkpoint is given{named}: set init.ckpt", _another(ways))
    if not init.whole:
        return Refusal(f"init.ckpt={init.path}: {init.problem}{_quoting_hint(init)}", _another(ways))
    if not init.tensors:
        return Refusal(f"init.ckpt={init.path} holds no weights", _another(ways))
    if facts.in_the_way and last is not None:
        return Refusal(
            f"init=warmstart, but {describe(last)} lies in {facts.state.place.checkpoints}: the repository's own "
            "precedence would decide, and usually resumes",
            (
                f"warm-start, the old folder is moved aside: {ways.command('init.overwrite=true')}",
                f"warm-start elsewhere: {ways.command(f'exp_id={facts.state.unused}')}",
                *ways.resume(),
            ),
        )
    return None


def _given(facts: Facts) -> str:
    """The checkpoint that init.ckpt names, and what is wrong with it."""
    init = facts.state.init
    return f"{facts.settings.init.ckpt}" + (f" ({init.problem})" if init is not None and init.problem else "")


def _another(ways: Ways) -> tuple[str, ...]:
    return ways.nearby() if ways.facts.state.nearby else (*ways.nearby(), *ways.scratch())


def _quoting_hint(init: Xray) -> str:
    """A path that was quoted or escaped for Hydra, as its documentation teaches, is taken here as it stands."""
    text = str(init.path)
    if text.endswith(("'", '"')) or "\\" in text:
        return "; paths need no quotes or backslashes beyond the shell's"
    return ""
