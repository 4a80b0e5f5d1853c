"""The page of a search: the best settings, which settings matter, and every trial."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.experiments.tuning.space import Parameter
from shoal.report import sections as build
from shoal.report.page import render_page
from shoal.report.sections import Block, Section
from shoal.training.files import explained, replace_file

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from shoal.experiments.tuning.driver import Tuner

MOST_ROWS = 20
TO = "\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}"
MOST_NUMBERS = 5
"""Trials that are named for one reason to fail."""


def write_tuning_report(tuner: Tuner) -> Path:
    """Write `report.html` into the folder of a search and return its path."""
    config, target = tuner.search.config, tuner.folder / "report.html"
    parts = [_overview(tuner), _importance(tuner), _trials(tuner), _settings(tuner), _failures(tuner), _setup(tuner)]
    page = render_page(f"tune {config['world']}", config["algo"]["name"], tuner.folder.resolve().name, parts)
    with explained(f"{target} could not be written", "Make room, or check the permissions of the folder."):
        replace_file(target, page)
    return target


def _overview(tuner: Tuner) -> Section:
    trials = tuner.study.get_trials(deepcopy=False)
    ranked = tuner.ranked()
    states = [trial.state.name for trial in trials]
    items: list[tuple[str, object]] = [("trials", len(trials)), ("ended early", states.count("PRUNED"))]
    items += [("failed", states.count("FAIL"))] if "FAIL" in states else []
    if ranked:
        first = next((trial.value for trial in trials if trial.number == 0 and trial.value is not None), None)
        items.append(("best, interquartile mean", ranked[0].value))
        items.append(("of seeds", len(tuner.scores_of(ranked[0].number))))
        items += [("without a search", first)] if first is not None else []
    return Section("Overview", [build.stats(items)], _note(tuner))


def _note(tuner: Tuner) -> str:
    seconds = tuner.search.run_seconds
    how = "at equal steps, by the last evaluation" if seconds is None else f"after {seconds:g} s of training"
    return f"Scores are compared {how}. A promising trial is trained with {tuner.search.seeds} seeds, others with one."


def _importance(tuner: Tuner) -> Section:
    """What Optuna says about which settings decide."""
    shares = importances(tuner)
    items: list[Block] = [{"name": name, "value": share} for name, share in shares.items()]
    history = sorted(tuner.ranked(), key=lambda trial: trial.number)
    blocks = [build.bars("importance", items)] if items else []
    if len(history) > 1:
        x, y = [trial.number for trial in history], [_finite(trial) for trial in history]
        curves = [build.series("trial", x, y, color=7), build.series("best so far", x, np.fmax.accumulate(y), color=2)]
        blocks.append(build.lines("values in the order of trials", curves, x="trial"))
    return Section(
        "What matters", blocks, "Importance by PED-ANOVA (Watanabe et al. 2023): what tells good trials apart."
    )


def importances(tuner: Tuner) -> dict[str, float]:
    """The importance of every setting, largest first; nothing as long as there are too few trials, or all are alike."""
    import optuna

    ranked = tuner.ranked()
    if len(ranked) < 4 or len({trial.value for trial in ranked}) == 1:
        return {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the best are like the others is seen on the page
            evaluator = optuna.importance.PedAnovaImportanceEvaluator()
            shares = optuna.importance.get_param_importances(tuner.study, evaluator=evaluator)
    except (RuntimeError, ValueError):  # all trials alike
        return {}
    return {name: float(share) for name, share in shares.items() if math.isfinite(share)}


def _trials(tuner: Tuner) -> Section:
    names = [parameter.name for parameter in tuner.search.parameters]
    rows: list[list[Any]] = []
    for trial in tuner.ranked()[:MOST_ROWS]:
        scores, values = tuner.scores_of(trial.number), tuner.values_of(trial)
        spread = f"{min(scores.values()):.4g}{TO}{max(scores.values()):.4g}" if len(scores) > 1 else ""
        rows.append([trial.number, trial.value, len(scores), spread, *(as_shown(values.get(name)) for name in names)])
    columns = ["trial", "value", "seeds", "spread", *(name.removeprefix("algo.") for name in names)]
    blocks = [build.table("best first; those of more seeds before those of fewer", columns, rows, size="wide")]
    return Section("Trials", blocks if rows else [])


def _settings(tuner: Tuner) -> Section:
    """The value of every trial over each setting."""
    done = [trial for trial in tuner.ranked() if math.isfinite(trial.value or 0.0)]
    blocks = [block for parameter in tuner.search.parameters if (block := _slice(parameter, done))]
    return Section("Settings", blocks if len(done) > 2 else [], "Every dot is a trial.")


def _slice(parameter: Parameter, trials: list[FrozenTrial]) -> Block:
    keys = [parameter.key(choice) for choice in parameter.choices]
    points = [(trial.params[parameter.name], trial.value) for trial in trials if parameter.name in trial.params]
    x = [keys.index(value) if keys else math.log10(value) if parameter.log else value for value, _ in points]
    below = {"names": [as_shown(key) for key in keys]} if keys else {"log": parameter.log}
    return build.dots(parameter.name, x, [value or 0.0 for _, value in points], **below, size="third", height=150)


def _failures(tuner: Tuner) -> Section:
    """What failed, the most frequent reason first."""
    trials: dict[str, list[int]] = {}
    for trial in tuner.study.get_trials(deepcopy=False):
        if (why := tuner.failure_of(trial.number)) is not None:
            trials.setdefault(why, []).append(trial.number)
    often = sorted(trials.items(), key=lambda item: -len(item[1]))
    rows = [[len(numbers), _listed(numbers), why] for why, numbers in often]
    return Section(
        "Failures", [build.table("", ["failed", "trials", "what happened"], rows, size="wide")] if rows else []
    )


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:MOST_NUMBERS])) + (", …" if len(numbers) > MOST_NUMBERS else "")


def _setup(tuner: Tuner) -> Section:
    rows = [[p.name, _range(p)] for p in tuner.search.parameters]
    blocks = [build.table("what is searched", ["setting", "values"], rows)]
    blocks.append(build.fields("what holds for all", tuner.search.config))
    return Section("Search", blocks, "`shoal train --config best.json` trains with the best settings.")


def _range(parameter: Parameter) -> str:
    if parameter.choices:
        return ", ".join(map(as_shown, parameter.choices))
    return f"{parameter.low:g} to {parameter.high:g}{', by logarithm' if parameter.log else ''}"


def as_shown(value: object) -> str:
    """A setting in a few digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _finite(trial: FrozenTrial) -> float:
    return trial.value if trial.value is not None and math.isfinite(trial.value) else math.nan
