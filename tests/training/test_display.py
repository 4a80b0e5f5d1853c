"""The live display: at most four times a second on a terminal, plain lines elsewhere, the last row always."""

import io

from rich.console import Console

from shoal.training.display import LineDisplay, PanelDisplay, draw_panel, duration, make_display, time_left
from shoal.training.lab import Headline
from tests.terminal import terminal

ROW = {
    "rollout/ep_rew_mean": 123.4,
    "train/loss": 0.5,
    "train/entropy": 0.1,
    "time/fps": 50_000.0,
    "time/time_elapsed": 10.0,
    "time/environment": 1.0,
    "time/inference": 1.0,
    "time/learning": 2.0,
    "time/other": 0.0,
}


def text_of(renderable):
    console = Console(file=io.StringIO(), width=100)
    console.print(renderable)
    return console.file.getvalue()


def test_the_panel_says_how_far_how_fast_how_good_and_where_the_time_goes():
    row = {"step": 250_000, "time/left": 30.0, **ROW}
    text = text_of(draw_panel("cartpole", row, 1_000_000, [("return", "123.4"), ("games won", "61.0%")]))
    for part in ("cartpole", "250,000 / 1,000,000", "50,000 steps/s", "left 0:30", "123.4", "61.0%", "loss", "0.5"):
        assert part in text
    assert "learning 50%" in text
    assert "environment 25%" in text


def test_a_terminal_is_not_redrawn_more_than_four_times_a_second():
    shown = []
    display = PanelDisplay("t", 100, Console(file=io.StringIO(), force_terminal=True))
    show, display.show = display.show, lambda row: (shown.append(row["step"]), show(row))
    for step in range(1000):
        display.row(step, ROW)
    display.close()
    assert len(shown) <= 3
    assert shown[-1] == 999


def test_where_the_time_goes_is_said_of_the_whole_run():
    shown = []
    display = LineDisplay("t", 1000, Console(file=io.StringIO()))
    display.show = shown.append
    display.row(10, ROW)
    display.row(20, {**ROW, "time/learning": 0.5, "time/evaluation": 8.0})
    display.close()
    assert [shown[-1][f"time/{phase}"] for phase in ("learning", "evaluation", "inference")] == [2.5, 8.0, 2.0]


def test_lines_are_plain_and_end_with_the_last_row():
    file = io.StringIO()
    display = LineDisplay("t", 1000, Console(file=file, width=40))
    for step in (10, 20, 1000):
        display.row(step, ROW)
    display.close()
    lines = file.getvalue().splitlines()
    assert [line.split("/")[0] for line in lines] == ["step 10", "step 1,000"]
    assert "\x1b" not in file.getvalue()


def test_what_an_environment_prints_stays_above_the_panel(monkeypatch):
    with terminal(monkeypatch) as screen:
        display = make_display("t", 100)
        for step in (1, 2, 3):
            print(f"printed at {step}")
            display.show({"step": step, **ROW})
        display.close()
    lines = [line for line in screen.lines if line]
    assert lines[:3] == ["printed at 1", "printed at 2", "printed at 3"]
    assert sum("t ─" in line for line in lines) == 1


def test_no_terminal_means_lines(capsys):
    assert isinstance(make_display("t", 10), LineDisplay)
    quiet = make_display("t", 10, quiet=True)
    quiet.row(1, ROW)
    quiet.say("x")
    assert capsys.readouterr().out == ""


def test_durations():
    assert [duration(s) for s in (5, 65, 3665)] == ["0:05", "1:05", "1:01:05"]


def test_the_time_that_is_left_does_not_count_what_the_first_rollout_took():
    first, later = {"step": 10, "time/time_elapsed": 60.0}, {"step": 40, "time/time_elapsed": 66.0}
    assert time_left(later, first, 100) == 12.0
    file = io.StringIO()
    display = LineDisplay("t", 100, Console(file=file, width=200))
    display.every = 0.0
    for row in (first, later):
        display.row(row["step"], {**ROW, **row})
    before, after = file.getvalue().splitlines()
    assert "left" not in before
    assert after.endswith("left 0:12")


def test_headlines_and_the_phase_stand_beside_the_return():
    file = io.StringIO()
    display = LineDisplay("hockey", 100, Console(file=file, width=200), [Headline("eval/won", "games won", ".1%")])
    display.row(50, {**ROW, "eval/won": 0.61, "phase": "defending"})
    display.row(60, ROW)  # games are not counted in every iteration, and stay until the next time
    display.close()
    lines = file.getvalue().splitlines()
    assert all("games won 61.0%" in line for line in lines)
    assert "phase defending" in lines[0]
