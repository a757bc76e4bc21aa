"""What each rank reported beside its plan."""

from pathlib import Path

from amt_hydra.bridge_reports import ranks, refusal


def test_a_refusal_is_found_in_the_report_of_any_rank(tmp_path: Path) -> None:
    (tmp_path / "bridge-rank0.jsonl").write_text('{"event": "plan", "rank": 0, "hash": "a"}\n')
    (tmp_path / "bridge-rank1.jsonl").write_text('{"event": "refused", "rank": 1, "message": "no key"}\n')
    assert refusal(tmp_path) == "no key"


def test_a_record_without_reports_tells_of_no_rank(tmp_path: Path) -> None:
    assert (refusal(tmp_path), ranks(tmp_path)) == ("", ())


def test_ranks_with_another_plan_do_not_count(tmp_path: Path) -> None:
    for rank, plan in enumerate("aba"):
        text = f'{{"event": "plan", "rank": {rank}, "hash": "{plan}"}}\n'
        (tmp_path / f"bridge-rank{rank}.jsonl").write_text(text)
    assert ranks(tmp_path) == (0, 2)


def test_a_line_that_a_kill_cut_short_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "bridge-rank0.jsonl").write_text('{"event": "plan", "rank": 0, "hash": "a"}\n{"event": "refu')
    assert (refusal(tmp_path), ranks(tmp_path)) == ("", (0,))
