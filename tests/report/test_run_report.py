"""report.html: self-contained, complete, and drawn without complaint by a real browser in both themes."""

import json
import re
import subprocess

import numpy as np
import pytest

from shoal.errors import ConfigError
from shoal.registry import make
from shoal.report import run_report
from shoal.report import sections as build
from shoal.report.page import render_page
from shoal.report.replay import play_page, record_replay, save_replay
from shoal.report.run_report import write_report
from shoal.training.run import create_run
from tests.report.browser import BROWSER, FLAGS, dom, needs_browser, screenshot


class Balance:
    """A controller that keeps a pole up for a while."""

    def __call__(self, obs, info):
        return (obs[:, 2] + 0.5 * obs[:, 3] > 0).astype(np.int64)

    def forget(self, ended):
        pass


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of thousands of iterations with evaluations, replays and a section of somebody else."""
    config = {
        "world": "cartpole",
        "num_envs": 2,
        "seed": 0,
        "note": "</script><b>",
        "algo": {"name": "ppo", "lr": 1e-3},
    }
    rng = np.random.default_rng(0)
    with create_run(tmp_path_factory.mktemp("runs"), config, "shoal train cartpole") as run:
        for i in range(3000):
            step = 2048 * (i + 1)
            means = run.episodes(step, rng.normal(i / 10, 5, 2), np.full(2, 9))
            times = {"time/environment": 0.01, "time/inference": 0.02, "time/learning": 0.05, "time/other": 0.001}
            run.log(step, {**means, "train/loss": np.nan if i == 7 else rng.random(), **times})
            if i % 300 == 299:
                run.evaluation(
                    step, {"episodes": 3, "mean": i, "low": i - 9, "high": i + 9, "returns": [1.0, 2.0, 4.0]}
                )
    batch = make("cartpole", 3, autoreset_mode="disabled")
    for step in (2048, 6144):
        save_replay(run.path, step, record_replay(batch, Balance(), 1, f"step {step:,}", max_steps=60))
    script = 'Shoal.blocks.spiral = (block, card, { el }) => card.append(el("p", { id: "spiral" }, block.words));'
    extra = build.Section(
        "Tournament",
        [
            build.matrix("win rate", ["a", "b"], ["a", "b"], [[np.nan, 0.7], [0.3, np.nan]], 0, 1, percent=True),
            build.bars("rating", [{"name": "a", "value": 25.0, "low": 24.0, "high": 26.0}]),
            build.table("games", ["who", "won"], [["a", 7], ["b", 3]]),
            build.custom("drawn by the section", "spiral", {"words": "custom block"}),
        ],
        scripts={"spiral": script},
    )
    build.add_section(run.path, "tournament", extra)
    return run.path


def test_the_file_needs_nothing_else(run):
    page = write_report(run).read_text()
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", page)
    assert "@import" not in page
    assert page.count("<script") == page.count("</script>") == 2  # the note in the config ends no script
    assert len(page) < 600_000


@needs_browser
def test_a_drawing_that_comes_with_a_run_cannot_reach_the_network(tmp_path):
    send = 'fetch("http://127.0.0.1:9/").catch(() => {});'
    listen = 'document.addEventListener("securitypolicyviolation", (e) => { document.title = e.effectiveDirective; });'
    section = build.Section("Bad", [build.text("", "x")], scripts={"bad": listen + send})
    page = tmp_path / "page.html"
    page.write_text(render_page("t", "", "", [section]))
    command = [*FLAGS, f"--user-data-dir={tmp_path}/profile", "--virtual-time-budget=3000", "--dump-dom", page.as_uri()]
    done = subprocess.run([BROWSER, *command], capture_output=True, text=True, timeout=600)
    assert "<title>connect-src</title>" in done.stdout


def test_thousands_of_points_become_hundreds():
    x = np.arange(50_000)
    y = np.sin(x / 1000.0)
    y[31_234] = 9.0
    curve = build.series("y", x, y)
    assert len(curve["x"]) == build.MAX_POINTS
    assert max(curve["max"]) == 9.0
    assert np.allclose(curve["y"], np.sin(np.array(curve["x"]) / 1000), atol=0.2)
    assert build.series("short", [1, 2], [np.nan, 2.5])["y"] == [None, 2.5]


def test_a_replay_holds_whole_episodes():
    batch = make("cartpole", 4, autoreset_mode="disabled")
    replay = record_replay(batch, Balance(), 3, "now")
    for lane in replay["lanes"]:
        assert lane["end"] in ("terminated", "truncated")
        assert len(lane["frames"]) == len(lane["rewards"]) + 1 == len(lane["actions"]) + 1
    fallen = [lane for lane in replay["lanes"] if lane["end"] == "terminated"]
    # the last frame shows how it ended, not the beginning of the next episode
    assert all(abs(lane["frames"][-1][2]) > 0.2 or abs(lane["frames"][-1][0]) > 2.4 for lane in fallen)
    assert json.loads(json.dumps(replay)) == replay
    with pytest.raises(ConfigError, match="autoreset_mode='disabled'"):
        record_replay(make("cartpole", 1), Balance(), 3, "now")


def test_a_section_needs_a_plain_name(run):
    with pytest.raises(ConfigError, match="not a plain word"):
        build.add_section(run, "../x", build.Section("x", []))


@needs_browser
def test_a_browser_draws_every_part(run, tmp_path):
    html = dom(write_report(run), tmp_path / "profile")
    for title in (
        "Overview",
        "Learning curves",
        "Evaluation",
        "Replay",
        "Where the time went",
        "Inside the learner",
        "Tournament",
    ):
        assert f">{title}" in html
    assert html.count("<svg") >= 7
    assert html.count("<canvas") == 3
    assert "step 0 / 60" in html
    assert "custom block" in html
    assert 'value="1"' in html  # both recordings can be chosen


@needs_browser
def test_the_player_plays_scrubs_and_enlarges(run, tmp_path):
    page = tmp_path / "page.html"
    read = "document.title = document.querySelector('.controls output').textContent"
    # without a screen the browser draws when it likes; a timer stands in for the screen's frames
    frames = "window.requestAnimationFrame = (draw) => setTimeout(() => draw(performance.now()), 16)"
    play = f"{frames}; document.querySelector('.play').click(); setTimeout(() => {{ {read} }}, 2500)"
    forward = f"document.querySelectorAll('.controls button')[2].click(); {read}"
    scrub = f"const bar = document.querySelector('.controls input'); bar.value = 17; bar.oninput(); {read}"
    enlarge = (
        "const all = [...document.querySelectorAll('.lane')]; all[1].click(); document.title = all.map((x) => x.hidden)"
    )
    acts = {play: "step 60 / 60", forward: "step 1 / 60", scrub: "step 17 / 60", enlarge: "true,false,true"}
    for number, (act, title) in enumerate(acts.items()):
        script = f"<script>{{ {act} }}</script></body>"
        page.write_text(write_report(run).read_text().replace("</body>", script))
        assert f"<title>{title}</title>" in dom(page, tmp_path / f"profile{number}")


@needs_browser
@pytest.mark.parametrize("still", [False, True])
def test_a_replay_page_starts_by_itself_with_its_controls_in_sight(still, tmp_path):
    batch = make("cartpole", 4, autoreset_mode="disabled")
    page = play_page(tmp_path / "play.html", record_replay(batch, Balance(), 1, "now", max_steps=30))
    frames = "window.requestAnimationFrame = (draw) => setTimeout(() => draw(performance.now()), 16);"
    frames += f"window.matchMedia = () => ({{ matches: {str(still).lower()} }});"
    bottom = "document.querySelector('.controls').getBoundingClientRect().bottom"
    last = "[...document.querySelectorAll('canvas')].at(-1).getBoundingClientRect().bottom"
    read = f"[document.querySelector('.controls output').textContent, {bottom} < innerHeight, {last} < innerHeight]"
    html = page.read_text().replace("<header", f"<script>{frames}</script><header")
    html = html.replace("</body>", f"<script>setTimeout(() => {{ document.title = {read}; }}, 2500)</script></body>")
    page.write_text(html)
    assert f"<title>step {0 if still else 30} / 30,true,true</title>" in dom(page, tmp_path / "profile")


@needs_browser
def test_light_and_dark_look_as_they_are_called(run, tmp_path):
    page = write_report(run)
    means = {}
    for theme in ("light", "dark"):
        picture = screenshot(page, tmp_path / theme, tmp_path / f"{theme}.png", f"?theme={theme}")
        means[theme] = picture.mean()
        colours = np.unique((picture[::3, ::3] // 32).reshape(-1, 3) @ [1, 8, 64])
        assert len(colours) > 20  # curves, bars and lanes, not an empty page
    assert means["light"] > 200
    assert means["dark"] < 60


@needs_browser
@pytest.mark.parametrize("world", ["cartpole", "pendulum", "acrobot", "mountaincar", "mountaincar-continuous"])
def test_every_classic_world_draws_itself(world, tmp_path):
    batch = make(world, 1, autoreset_mode="disabled")
    space = batch.single_action_space

    class Random(Balance):
        def __call__(self, obs, info):
            return np.stack([space.sample()])

    replay = record_replay(batch, Random(), 0, world, max_steps=20)
    picture = screenshot(
        play_page(tmp_path / "play.html", replay), tmp_path / "p", tmp_path / "s.png", "?theme=light", 700
    )
    canvas = picture[200:560, 60:1180].reshape(-1, 3).astype(int)
    painted = (abs(canvas - [0xF4, 0xF5, 0xF7]).sum(1) > 60).mean()
    assert painted > 0.003
    batch.close()


def test_the_report_says_how_many_processors_were_in_use():
    rows = [
        {"step": k, "time/fps": 9.0, "time/learning": seconds, "time/cpu_cores": cores}
        for k, (seconds, cores) in enumerate([(1.0, 2.0), (3.0, 1.0)])
    ]
    section = run_report._time(rows, 2)
    assert section.note == "1.25 of 2 processors were in use on average."
    assert section.blocks[-1]["title"] == "processors in use"
    assert run_report._time([{"step": 1, "time/fps": 9.0}], 2).note == ""  # of a run before this was measured


def test_what_never_changes_is_a_sentence_and_not_a_chart():
    rows = [{"step": k, "train/clip_range": 0.2, "train/loss": 1 / k} for k in (1, 2, 3)]
    learner = run_report._learner(rows, {"step", "train/clip_range", "train/loss"})
    assert [block["title"] for block in learner.blocks] == ["train/loss"]
    assert learner.note == "Constant: train/clip_range 0.2."
    result = {"step": 9, "episodes": 3, "mean": 5.0, "low": 5.0, "high": 5.0}
    same = run_report._evaluation([{**result, "returns": [5.0] * 3}], rows, set())
    assert "every episode returned 5." in same.note
    assert [block["kind"] for block in same.blocks] == ["lines"]
    spread = run_report._evaluation([{**result, "returns": [4.0, 5.0, 6.0]}], rows, set())
    assert [block["kind"] for block in spread.blocks] == ["lines", "histogram"]
