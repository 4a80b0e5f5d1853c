"""`shoal kg ...`: look at a knowledge graph without training: prove a query, mine rules, train embeddings."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from shoal.cli.options import parse
from shoal.errors import unknown_name

Data = Annotated[str, arg(metavar="DATA")]


@dataclass(frozen=True)
class ProveCommand:
    """Search for a shortest proof of a query and print it as a tree. The query itself does not count as a fact."""

    query: Annotated[Positional[str], arg(metavar="QUERY")]
    """A ground atom, e.g. "locatedInCR(palestine,asia)"."""
    data: Data = "families"
    """A folder, pykeen:NAME, or families."""
    rules: str | None = None
    """Another rule file than the folder's rules.txt."""
    max_depth: int = 6
    """Steps up to which to search."""
    max_atoms: int = 6
    """Goals per state, at most."""
    budget: int = 500_000
    """States to look at, at most."""
    count: bool = False
    """Also count the proofs of each length, every rule and fact being a choice of its own."""


@dataclass(frozen=True)
class MineCommand:
    """Mine Horn rules with one or two body atoms from the facts, scored by PCA confidence."""

    data: Data = "families"
    """A folder, pykeen:NAME, or families."""
    out: Annotated[str | None, arg(metavar="FILE")] = None
    """Where to write the rules; printed if not given. A folder of data expects rules.txt in it."""
    min_support: int = 20
    """Facts that a rule must predict."""
    min_confidence: float = 0.2
    """PCA confidence that a rule must have."""
    max_per_head: int = 8
    """Best rules kept of one head predicate."""


@dataclass(frozen=True)
class KGECommand:
    """Train an embedding model on the facts, for `shoal eval --mode hybrid` and `shoal train kg --kge FOLDER`."""

    out: Annotated[Positional[str], arg(metavar="FOLDER")]
    """Where the model is written."""
    data: Data = "families"
    """A folder, pykeen:NAME, or families."""
    rules: str | None = None
    """Another rule file than the folder's rules.txt; predicates of rules are in the vocabulary."""
    model: str = "complex"
    """complex, rotate, rote, or walks, which has no vectors but weights of relations on walks. What is not given of
    the following is what suits the model."""
    rank: int | None = None
    """Complex numbers per entity; states of the walker."""
    epochs: int | None = None
    """Passes over the facts."""
    lr: float | None = None
    """Learning rate of Adagrad; for walks of Adam."""
    regulariser: float | None = None
    """Weight of the model's penalty: N3, or for rote the squared lengths."""
    num_negatives: int | None = None
    """Wrong entities per batch, for walks per question."""
    walk_length: int | None = None
    """Also ask where random walks of up to this many facts end; for walks the most facts that one has."""
    seed: int = 0
    """Everything random follows from this."""
    soft_facts: Annotated[str | None, arg(metavar="FILE")] = None
    """Also write facts that the model predicts, without any of the valid and test splits."""
    top_k: int = 1
    """Predicted facts per predicate, side and anchor."""
    threshold: float = 0.9
    """Probability that a predicted fact must have."""


def main(argv: list[str]) -> int:
    """`shoal kg prove|mine-rules|train-kge`."""
    verbs = {"prove": prove, "mine-rules": mine, "train-kge": train_kge}
    if not argv or argv[0] in ("-h", "--help"):
        print("Look at a knowledge graph without training.\n")
        print('  shoal kg prove "QUERY" --data DIR   a shortest proof as a tree')
        print("  shoal kg mine-rules --data DIR      rules from the facts")
        print("  shoal kg train-kge FOLDER --data DIR   an embedding model, and facts it predicts")
        print("\n`shoal kg VERB --help` explains one.")
        return 0
    if argv[0] not in verbs:
        raise unknown_name("verb of `shoal kg`", argv[0], verbs, "`shoal kg --help`")
    return verbs[argv[0]](argv[1:])


def prove(argv: list[str]) -> int:
    """Print a proof tree; 1 if there is no proof."""
    command = parse(ProveCommand, argv, "shoal kg prove")

    from shoal.worlds.kg.dataset import load_dataset
    from shoal.worlds.kg.proof_tree import format_tree, proof_tree
    from shoal.worlds.kg.prover import OUT_OF_BUDGET, Prover

    data = load_dataset(command.data, rules=command.rules)
    _print_notes(data.notes)
    query = data.kb.query(command.query)
    prover = Prover(data.kb, max_atoms=command.max_atoms, budget=command.budget)
    moves = prover.proof(query, command.max_depth)
    if moves is None:
        out_of_budget = int(prover.prove(query[None], command.max_depth)[0]) == OUT_OF_BUDGET
        why = f"within {command.budget:,} states" if out_of_budget else f"up to {command.max_depth} steps"
        print(f"No proof of {command.query} {why}.")
        return 1
    print(f"Proved in {len(moves)} step{'s' if len(moves) > 1 else ''}:")
    print(format_tree(proof_tree(data.kb, query, moves)))
    if command.count:
        counts = prover.count_proofs(query[None], len(moves))[0]
        print("Proofs of at most n steps: " + ", ".join(f"{n}: {c}" for n, c in enumerate(counts.tolist(), 1)))
    return 0


def mine(argv: list[str]) -> int:
    """Print or write a rule file."""
    command = parse(MineCommand, argv, "shoal kg mine-rules")

    from shoal.worlds.kg.knowledge import KnowledgeBase
    from shoal.worlds.kg.mining import MiningConfig, format_rules, mine_rules
    from shoal.worlds.kg.sources import training_atoms

    config = MiningConfig(command.min_support, command.min_confidence, command.max_per_head)
    rules = mine_rules(KnowledgeBase.from_atoms(training_atoms(command.data), []), config)
    text = format_rules(rules)
    if command.out is None:
        print(text, end="")
    else:
        Path(command.out).write_text(text)
        print(f"{len(rules)} rules written to {command.out}.")
    return 0


def train_kge(argv: list[str]) -> int:
    """Train, rank the validation split, and save."""
    command = parse(KGECommand, argv, "shoal kg train-kge")

    from shoal.worlds.kg.dataset import Filters, load_dataset
    from shoal.worlds.kg.kge.config import usual_config
    from shoal.worlds.kg.kge.saved import save_kge
    from shoal.worlds.kg.kge.soft_facts import write_soft_facts
    from shoal.worlds.kg.kge.training import train_kge
    from shoal.worlds.kg.ranking import EvalConfig, rank_queries

    data = load_dataset(command.data, rules=command.rules, filters=Filters(require_rule=False))
    names = ("rank", "epochs", "lr", "regulariser", "num_negatives", "walk_length", "seed")
    config = usual_config(command.model, **{name: getattr(command, name) for name in names})
    show = _counter("epoch")
    kge = train_kge(data, config, lambda epoch, loss: show(epoch, config.epochs, f"loss {loss:.3f}"))
    result = rank_queries(data, data.split("valid"), EvalConfig(mode="kge_only"), kge=kge)
    print(f"{command.model} on {data.name}: validation MRR {result['mrr']:.3f} against 100 corruptions")
    print(f"Saved to {save_kge(kge, command.out)}.")
    if command.soft_facts is not None:
        number = write_soft_facts(command.soft_facts, kge, data, command.top_k, command.threshold)
        print(f"{number} predicted facts written to {command.soft_facts}.")
    return 0


def _counter(what: str) -> Callable[[int, int, str], None]:
    """Rewrites one line on a terminal; silent otherwise."""

    def show(done: int, total: int, note: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{what} {done}/{total}  {note}", end="\n" if done == total else "", file=sys.stderr, flush=True)

    return show


def _print_notes(notes: tuple[str, ...]) -> None:
    for note in notes:
        print(f"Note: {note}", file=sys.stderr)
