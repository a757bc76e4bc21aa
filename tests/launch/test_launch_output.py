"""What of the output reaches the log."""

import itertools
import os
import random

import pytest

from amt_hydra.launch.output import Collapse, Log, Screen

CASES = {
    b"a\nb\n": b"a\nb\n",
    b"a": b"a",
    b"\n\n": b"\n\n",
    b"a\r\nb\r\n": b"a\nb\n",
    b"1\r2\r3\n": b"3\n",
    b"\r1\r2\r3": b"3",
    b"1\r2\r3\r": b"3",
    b"1\r2\r3\r\nx": b"3\nx",
    b"1\r\r\r\n": b"1\n",
    b"bar\r   \rtext\n": b"text\n",
    b"\r\n": b"\n",
    b"\xe6\x97\r\xa5\n": b"\xa5\n",
    b"x\n1\r2\ny\n": b"x\n2\ny\n",
    b"": b"",
}


@pytest.mark.parametrize("data", CASES)
def test_an_overwritten_line_leaves_its_last_state_however_it_is_cut(data):
    for cuts in itertools.chain.from_iterable(itertools.combinations(range(len(data)), n) for n in range(3)):
        pieces = [data[a:b] for a, b in itertools.pairwise([0, *cuts, len(data)])]
        collapse = Collapse()
        assert b"".join(collapse.feed(piece, 0.0) for piece in pieces) + collapse.rest() == CASES[data]


def test_the_fast_path_and_the_slow_one_agree():
    dice = random.Random(1)
    for _ in range(300):
        data = bytes(dice.choice(b"ab\r\n") for _ in range(30))
        whole = Collapse()
        by_byte = Collapse()
        expected = whole.feed(data, 0.0) + whole.rest()
        assert b"".join(by_byte.feed(data[i : i + 1], 0.0) for i in range(30)) + by_byte.rest() == expected


def test_a_long_lived_bar_leaves_a_line_a_minute():
    collapse = Collapse()
    lines = b"".join(collapse.feed(b"\r%d s" % second, float(second)) for second in range(200))
    assert lines == b"60 s\n121 s\n182 s\n"
    assert collapse.rest() == b"199 s"


def test_a_line_without_end_is_not_kept_for_ever():
    collapse = Collapse()
    sizes = [len(collapse.feed(b"x" * 2**18, 0.0)) for _ in range(8)]
    assert sizes == [0, 0, 0, 0, 5 * 2**18, 0, 0, 0]


def test_a_disk_that_was_full_for_a_while_leaves_a_gap_that_is_said(tmp_path):
    warned = []
    log = Log(tmp_path / "log", warned.append)
    log.write(b"before\n")
    file = log._fd
    log._fd = os.open("/dev/full", os.O_WRONLY)
    log.write(b"lost\n")
    log.write(b"lost\n")
    os.close(log._fd)
    log._fd = file
    log.write(b"after\n")
    log.note("a note")
    log.close()
    assert (tmp_path / "log").read_bytes() == (
        b"before\n\n[amt_hydra: 10 bytes could not be written here]\nafter\namt_hydra: a note\n"
    )
    assert warned == [f"{tmp_path}/log cannot be written (No space left on device); the training goes on without it"]


def test_a_note_stands_on_a_line_of_its_own(tmp_path):
    log = Log(tmp_path / "log", lambda _: None)
    log.write(b"\r1 %\r2 %")
    log.note("ended")
    log.write(b"x\n")
    log.close()
    assert (tmp_path / "log").read_bytes() == b"2 %\namt_hydra: ended\nx\n"


def test_a_screen_that_does_not_block_is_waited_for():
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    screen = Screen(write_end)
    screen.write(b"x" * 10**6)
    got = b""
    while len(got) < 10**6:
        got += os.read(read_end, 65536)
    screen.drain()
    os.close(read_end)
    screen.write(b"nobody reads this")
    screen.drain()
    screen.write(b"nor this")
    os.close(write_end)
