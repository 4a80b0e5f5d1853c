"""The report of an experiment says what all seeds together say."""

import numpy as np

from shoal.cli import main
from shoal.experiments.report import write_experiment_report
from shoal.experiments.sources import read_source
from tests.experiments.fake import experiment
from tests.report.browser import dom, needs_browser, screenshot


def test_the_page_is_one_file_with_everything_in_it(tmp_path, capsys):
    made = experiment(tmp_path, "six", [100, 200, 150, 50, 300, 180])
    made.note_failure(7, "its process ended with SIGKILL")
    half = experiment(tmp_path, "half", [100, 200, 300])
    (half.run(1) / "metrics.jsonl").write_text((half.run(1) / "metrics.jsonl").read_text()[:200].split("\n")[0] + "\n")
    half.note_failure(1, "it broke")
    assert [run.seed for run in read_source(half.path).runs] == [0, 2]
    assert main(["report", str(made.path)]) == 0
    page = (made.path / "report.html").read_text()
    assert str(made.path / "report.html") in capsys.readouterr().out
    for text in ("interquartile mean", "best, seed 4", "worst, seed 3", "its process ended with SIGKILL"):
        assert text in page
    for text in ("best: seed 4, return 300", "median: seed 2, return 150", "worst: seed 3, return 50"):
        assert text in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")


def test_an_experiment_that_has_not_begun_has_a_page(tmp_path):
    made = experiment(tmp_path, "none", [1.0])
    for name in ("metrics.jsonl", "outcome.json"):
        (made.run(0) / name).unlink()
    assert "No seed has ended yet" in write_experiment_report(made).read_text()


@needs_browser
def test_it_is_drawn_in_both_themes(tmp_path):
    page = write_experiment_report(experiment(tmp_path, "six", [100, 200, 150, 50, 300, 180]))
    html = dom(page, tmp_path / "profile")
    assert html.count("<svg") >= 3
    light, dark = (
        screenshot(page, tmp_path / "profile", tmp_path / f"{theme}.png", f"?theme={theme}", height=1200)
        for theme in ("light", "dark")
    )
    assert np.mean(light) > 150 > 80 > np.mean(dark)
