"""The kinds of recorded cases. Each check returns a sentence per difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from shoal.worlds.kg.lab.metrics import TIES, auc_pr, auc_roc, rank_metrics, ranks
from shoal.worlds.kg.lab.prover import Prover
from shoal.worlds.kg.lanes.data.dataset import Dataset, Filters, Queries, load_folder
from shoal.worlds.kg.lanes.data.knowledge import KnowledgeBase
from shoal.worlds.kg.lanes.data.parse import parse_atom, parse_rule
from shoal.worlds.kg.lanes.engine.cpu import CpuEngine
from shoal.worlds.kg.lanes.env import KGBatch
from shoal.worlds.kg.lanes.options import EngineOptions, ProofOptions
from shoal.worlds.kg.lanes.queries import Asked

ENGINES = ("compiled", "tensor")
WIDE = 12  # goals per state where no limit is meant: more than any recorded successor has
FACT_CAP = 128  # of the tensor engine at first; where it drops anything the episodes run again without
NO_QUERY = np.zeros(3, np.int32)
Found = list[str]


@cache
def load(folder: Path, name: str, rules: str) -> Dataset:
    return load_folder(folder / name, rules=rules, filters=Filters(require_rule=False))


def parse_state(kb: KnowledgeBase, text: str) -> np.ndarray:
    """Goals [k, 3] of a state written with ` & `; V1, V2, ... are variables."""
    vocabulary = kb.vocabulary
    known = set(vocabulary.constants)

    def term(name: str) -> int:
        is_variable = name not in known and name[0] == "V" and name[1:].isdigit()
        return vocabulary.num_constants + int(name[1:]) if is_variable else vocabulary.constant_id(name)

    goals = [parse_atom(atom) for atom in text.split(" & ")]
    return np.array([(vocabulary.predicate_id(p), term(a), term(b)) for p, a, b in goals], np.int32)


# ---------------------------------------------------------------------- loader and index


def check_datasets(cases: list[dict], data: Path, engines: Sequence[str]) -> Found:
    found = []
    for case in cases:
        dataset = load(data, case["dataset"], case["rules_file"])
        kb = dataset.kb
        got: dict[str, Any] = {
            "facts": len(kb.facts),
            "predicates": kb.vocabulary.num_regular,
            "constants": kb.vocabulary.num_constants,
            "rules": len(kb.rules),
            "max_rule_body": kb.rules.max_body,
            "max_rules_per_head": kb.rules.max_per_head,
            "max_rule_vars": kb.rules.max_variables,
            "queries": {split: len(getattr(dataset, split)) for split in ("train", "valid", "test")},
            "train_queries_with_rule": len(Filters().apply("train", dataset.train, kb)),
        }
        buckets = ("max_facts_per_predicate", "max_facts_per_pred_arg0", "max_facts_per_pred_arg1")
        got |= dict(zip(buckets, kb.facts.largest_buckets(), strict=True))
        found += [f"{case['dataset']} {key}: {got[key]} for {case[key]}" for key in got if got[key] != case[key]]
    return found


def check_lookups(cases: list[dict], data: Path, engines: Sequence[str]) -> Found:
    found = []
    for case in cases:
        kb = load(data, case["dataset"], case.get("rules", default_rules(case["dataset"]))).kb
        predicate, *arguments = parse_atom(case["pattern"])
        first, second = (None if name == "?" else kb.vocabulary.constant_id(name) for name in arguments)
        count = len(kb.facts.match(kb.vocabulary.predicate_id(predicate), first, second))
        if count != case["count"]:
            found.append(f"{case['dataset']} {case['pattern']}: {count} for {case['count']}")
    return found


def default_rules(dataset: str) -> str:
    return "rules_amie.txt" if dataset == "nations" else "rules.txt"


# ---------------------------------------------------------------------- expansions


def check_walks(cases: list[dict], data: Path, engines: Sequence[str]) -> Found:
    found = []
    for (name, rules), group in _grouped(cases, "dataset", "rules"):
        kb = load(data, name, rules).kb
        steps = [(step, kb.query(case["query"])) for case in group for step in case["steps"]]
        for engine in engines:
            found += [f"{engine} {name}: {problem}" for problem in _check_steps(kb, steps, engine)]
    return found


def _check_steps(kb: KnowledgeBase, steps: list[tuple[dict, np.ndarray]], engine: str) -> Iterator[str]:
    states = [parse_state(kb, step["state"]) for step, _ in steps]
    excluded = [query for _, query in steps]
    for (step, _), result in zip(steps, expand_all(kb, states, excluded, engine), strict=True):
        for key, value in step.items():
            got = _get_expansion(key, result, value)
            if got != value:
                yield f"{step['state']} {key}: {got} for {value}"


def _get_expansion(key: str, result: dict, recorded: Any) -> Any:
    """What this engine says for one recorded field of an expansion."""
    if key == "open_sample":
        return sorted(set(recorded) & set(result["open"]))
    return recorded if key == "state" else result[key]


def expand_all(
    kb: KnowledgeBase, states: list[np.ndarray], excluded: list[np.ndarray], engine: str
) -> list[dict[str, Any]]:
    """Expansions without any cap, described as the recordings do."""
    if engine == "tensor":
        from tests.worlds.kg.single_states import expand_states

        pairs = expand_states(kb, states, excluded, WIDE)
    else:
        cpu = CpuEngine(kb, WIDE)
        pairs = []
        for goals, query in zip(states, excluded, strict=True):
            collapsed = cpu.expand(goals, query)
            rows = cpu.expand(goals, query, collapse=False).rows
            pairs.append(([goals[:0]] if collapsed.proved else collapsed.rows, rows))
    return [_describe(kb, collapsed, rows) for collapsed, rows in pairs]


def _describe(kb: KnowledgeBase, collapsed: list[np.ndarray], rows: list[np.ndarray]) -> dict[str, Any]:
    texts = [kb.vocabulary.state(row) for row in collapsed]
    unfinished = sorted({kb.vocabulary.state(row) for row in rows if len(row)})
    return {
        "collapsed": sorted(text or "True" for text in texts) or ["False"],
        "raw_count": len(rows),
        "raw_true": sum(len(row) == 0 for row in rows),
        "distinct_open": len(unfinished),
        "open": unfinished,
        "max_atoms_seen": max(map(len, rows), default=0),
    }


# ---------------------------------------------------------------------- exact search


def check_prove(cases: list[dict], data: Path, engines: Sequence[str]) -> Found:
    found = []
    for (name, rules, atoms), group in _grouped(cases, "dataset", "rules", "max_atoms"):
        kb = load(data, name, rules).kb
        prover = Prover(kb, max_atoms=atoms, budget=1_000_000)
        for case in group:
            found += [f"{name} {problem}" for problem in _check_query(prover, kb, case)]
    return found


def _check_query(prover: Prover, kb: KnowledgeBase, case: dict) -> Iterator[str]:
    query = kb.query(case["query"])
    searched = case["searched_to"]
    steps = int(prover.prove(query[None], searched)[0])
    if steps != (-1 if case["min_steps"] is None else case["min_steps"]):
        yield f"{case['query']} steps: {steps} for {case['min_steps']}"
    by_depth = case.get("provable_by_depth", [])
    if by_depth != [0 < steps <= depth for depth in range(1, len(by_depth) + 1)]:
        yield f"{case['query']} provable: {steps} for {by_depth}"
    counts = prover.count_proofs(query[None], len(case["proofs_by_depth"]))[0].tolist()
    if counts != case["proofs_by_depth"]:
        yield f"{case['query']} proofs: {counts} for {case['proofs_by_depth']}"
    if steps > 0 and len(prover.proof(query, searched) or ()) != steps:
        yield f"{case['query']}: the proof to read does not have {steps} steps"


def check_synthetic(cases: list[dict], data: Path, engines: Sequence[str]) -> Found:
    found = []
    for case in cases:
        facts = [parse_atom(text) for text in case["facts"]]
        rules = [parse_rule(text) for text in case["rules"]]
        asked = {parse_atom(query["query"])[0] for query in case["queries"]}
        asked |= {parse_atom(walk["excluded"])[0] for walk in case["walks"] if walk["excluded"]}
        kb = KnowledgeBase.from_atoms(facts, rules, case["constants"], asked)
        prover = Prover(kb, max_atoms=case["max_atoms"], budget=1_000_000)
        for query in case["queries"]:
            found += [f"{case['id']} {problem}" for problem in _check_query(prover, kb, query)]
        for engine in engines:
            steps = [
                (step, kb.query(walk["excluded"]) if walk["excluded"] else NO_QUERY)
                for walk in case["walks"]
                for step in walk["steps"]
            ]
            found += [f"{case['id']} {engine} {problem}" for problem in _check_steps(kb, steps, engine)]
    return found


# ---------------------------------------------------------------------- episodes


def check_episodes(cases: list[dict], data: Path, engines: Sequence[str]) -> Found:
    for case in cases:
        case["settings"] = tuple(sorted(case["config"].items()))
        case["weight"] = case["result"]["reject_weight"]
    found = []
    for (name, rules, settings, weight), group in _grouped(cases, "dataset", "rules", "settings", "weight"):
        dataset = load(data, name, rules)
        for engine in engines:
            for reward_type in range(6) if engine == "compiled" else (5,):
                options = ProofOptions(**dict(settings), reward_type=reward_type, negative_ratio=round(1 / weight))
                replay = Replay(dataset, options, group, engine, FACT_CAP)
                problems = list(replay.run())
                if replay.dropped:  # the cap was too low for these episodes
                    problems = list(Replay(dataset, options, group, engine, None).run())
                found += [f"{engine} {name} {problem}" for problem in problems]
    return found


class Replay:
    """Episodes of one configuration, one per lane, with the recorded picks."""

    def __init__(
        self, dataset: Dataset, options: ProofOptions, cases: list[dict], engine: str, fact_cap: int | None
    ) -> None:
        self.cases, self.kb, self.reward_type = cases, dataset.kb, options.reward_type
        triples = np.stack([dataset.kb.query(case["query"]) for case in cases])
        label = np.array([case["label"] for case in cases], np.int32)
        asked = Asked(Queries(triples, np.full(len(cases), -2, np.int32)), "eval", label)
        made_by = EngineOptions(engine=engine, fact_cap=fact_cap)  # type: ignore[arg-type]
        self.env = KGBatch(len(cases), dataset, options, asked, engine=made_by)

    @property
    def dropped(self) -> int:
        """Facts that the tensor engine did not look at."""
        return getattr(self.env._fill, "dropped", 0)

    def run(self) -> Iterator[str]:
        obs, info = self.env.reset(seed=0)
        for t in range(max(len(case["steps"]) for case in self.cases)):
            action = np.zeros(len(self.cases), np.int64)
            for lane, case in enumerate(self.cases):
                if t < len(case["steps"]):
                    step = case["steps"][t]
                    texts = self._actions(obs, info, lane)
                    got = (self.kb.vocabulary.state(obs["sub_index"][lane, 0]), sorted(texts), info["n_skipped"][lane])
                    if got != (step["state"], sorted(step["actions"]), step["skipped"]):
                        yield f"{case['query']} step {t}: {got} for {step}"
                        return
                    action[lane] = texts.index(step["pick"])
            obs, reward, terminated, truncated, info = self.env.step(action)
            for lane, case in enumerate(self.cases):
                if t + 1 == len(case["steps"]):
                    yield from self._check_end(case, lane, float(reward[lane]), bool(truncated[lane]), info)
                elif t + 1 < len(case["steps"]) and (terminated[lane] or truncated[lane]):
                    yield f"{case['query']} ended early, after step {t}"

    def _actions(self, obs: dict, info: dict, lane: int) -> list[str]:
        count = int(info["action_mask"][lane].sum())
        return [self.kb.vocabulary.state(row) for row in obs["derived_sub_indices"][lane, :count]]

    def _check_end(self, case: dict, lane: int, reward: float, truncated: bool, info: dict) -> Iterator[str]:
        result = case["result"]
        if "final_info" not in info or not info["_final_info"][lane]:
            yield f"{case['query']} did not end after {len(case['steps'])} steps"
            return
        final = info["final_info"]
        outcome = "depth" if truncated else self.kb.vocabulary.state(info["final_obs"]["sub_index"][lane, 0])
        got = {
            "outcome": outcome,
            "truncated": truncated,
            "ended": outcome == "End",
            "success": bool(final["success"][lane]),
            "length": int(final["depth"][lane]),
        }
        wrong = {key: value for key, value in got.items() if result[key] != value}
        if wrong or abs(reward - result["reward"][str(self.reward_type)]) > 1e-6:
            yield f"{case['query']}: {wrong} and reward {reward} for {result}"


# ---------------------------------------------------------------------- rankings


def check_ranking(cases: list[dict], data: Path, engines: Sequence[str]) -> Found:
    found = []
    for case in cases:
        score, valid = np.array(case["scores"]), np.array(case["valid"])
        for ties in TIES:
            rank = ranks(score, valid, ties)
            got: dict[str, Any] = {**rank_metrics(rank), "ranks": rank.tolist()}
            found += [
                f"{case['id']} {ties} {key}: {got[key]} for {value}"
                for key, value in case[ties].items()
                if not np.allclose(got[key], value, rtol=0, atol=1e-9)
            ]
        positive = np.zeros_like(valid)
        positive[:, 0] = True
        for name, measure in (("auc_pr", auc_pr), ("auc_roc", auc_roc)):
            value = measure(score[valid], positive[valid])
            if abs(value - case[name]) > 1e-9:
                found.append(f"{case['id']} {name}: {value} for {case[name]}")
    return found


def _grouped(cases: list[dict], *keys: str) -> Iterator[tuple[tuple, list[dict]]]:
    def key(case: dict) -> tuple:
        return tuple(case[name] for name in keys)

    for values, group in groupby(sorted(cases, key=key), key):
        yield values, list(group)


CHECKS: dict[str, Callable[[list[dict], Path, Sequence[str]], Found]] = {
    "datasets": check_datasets,
    "lookups": check_lookups,
    "walks": check_walks,
    "prove": check_prove,
    "synthetic": check_synthetic,
    "episodes": check_episodes,
    "ranking": check_ranking,
}
