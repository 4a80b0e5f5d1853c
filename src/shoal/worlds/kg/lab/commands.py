"""`shoal kg ...`: look at a knowledge graph without training a policy: prove a query, mine rules, train embeddings."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from shoal.errors import ConfigError
from shoal.options import Flag
from shoal.training.lab import Verb
from shoal.worlds.kg.lanes.data.mining import MiningConfig, format_rules, mine_rules

if TYPE_CHECKING:
    from shoal.worlds.kg.lanes.data.parse import Atom

Data = Annotated[str, Flag("DATA")]


@dataclass(frozen=True)
class ProveCommand:
    """Search for a shortest proof of a query and print it as a tree. The query itself does not count as a fact."""

    query: Annotated[str, Flag("QUERY", positional=True)]
    """A ground atom, e.g. "locatedInCR(palestine,asia)"."""
    data: Data = "families"
    """A folder, pykeen:NAME, or families."""
    rules: Annotated[str | None, Flag("FILE")] = None
    """A rule file other than the folder's rules.txt."""
    max_depth: int = 6
    """Steps up to which to search."""
    max_atoms: int = 6
    """Goals per state, at most."""
    budget: int = 500_000
    """States to look at, at most."""
    count: bool = False
    """Also count the proofs of each length, every rule and fact being a choice of its own."""


@dataclass(frozen=True)
class MineCommand(MiningConfig):
    """Mine Horn rules with one or two body atoms from the facts, scored by PCA confidence."""

    data: Data = "families"
    """A folder, pykeen:NAME, or families."""
    out: Annotated[str | None, Flag("FILE")] = None
    """Where to write the rules; printed if not given. A folder of data expects rules.txt in it."""


@dataclass(frozen=True)
class KGECommand:
    """Train an embedding model on the facts, for `shoal eval --mode hybrid` and `shoal train kg --kge FOLDER`."""

    out: Annotated[str, Flag("FOLDER", positional=True)]
    """Where the model is written."""
    data: Data = "families"
    """A folder, pykeen:NAME, or families."""
    rules: Annotated[str | None, Flag("FILE")] = None
    """A rule file other than the folder's rules.txt; predicates of rules are in the vocabulary."""
    model: Literal["complex", "rotate", "rote", "walks"] = "complex"
    """complex, rotate, rote, or walks, which has no vectors but weights of relations on walks. Whatever is not given of
    the following takes what suits the model."""
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
    soft_facts: Annotated[str | None, Flag("FILE")] = None
    """Also write facts that the model predicts, without any of the valid and test splits."""
    top_k: int = 1
    """Predicted facts per predicate, side and anchor."""
    threshold: float = 0.9
    """Probability that a predicted fact must have."""


def prove(command: ProveCommand) -> int:
    """Print a proof tree; 1 if there is no proof."""
    from shoal.worlds.kg.lab.prover import Prover, format_tree, proof_tree
    from shoal.worlds.kg.lanes.data.dataset import load_dataset
    from shoal.worlds.kg.lanes.engine.search import OUT_OF_BUDGET

    data = load_dataset(command.data, rules=command.rules)
    for note in data.notes:
        print(f"Note: {note}", file=sys.stderr)
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


def mine(command: MineCommand) -> int:
    """Print or write a rule file."""
    from shoal.worlds.kg.lanes.data.knowledge import KnowledgeBase

    rules = mine_rules(KnowledgeBase.from_atoms(_training_atoms(command.data), []), command)
    text = format_rules(rules)
    if command.out is None:
        print(text, end="")
    else:
        Path(command.out).write_text(text)
        print(f"{len(rules)} rules written to {command.out}.")
    return 0


def train(command: KGECommand) -> int:
    """Train, rank the validation split, and save."""
    from shoal.worlds.kg.lab.kge import train_kge, write_soft_facts
    from shoal.worlds.kg.lab.ranking import rank_queries
    from shoal.worlds.kg.lab.ranking_options import EvalConfig
    from shoal.worlds.kg.lanes.data.dataset import Filters, load_dataset
    from shoal.worlds.kg.lanes.kge.models import usual_config
    from shoal.worlds.kg.lanes.kge.saved import save_kge

    data = load_dataset(command.data, rules=command.rules, filters=Filters(require_rule=False))
    names = ("rank", "epochs", "lr", "regulariser", "num_negatives", "walk_length", "seed")
    config = usual_config(command.model, **{name: getattr(command, name) for name in names})

    def show(epoch: int, loss: float) -> None:
        """Rewrite one line on a terminal; silent otherwise."""
        if sys.stderr.isatty():
            end = "\n" if epoch == config.epochs else ""
            print(f"\repoch {epoch}/{config.epochs}  loss {loss:.3f}", end=end, file=sys.stderr, flush=True)

    kge = train_kge(data, config, show)
    result = rank_queries(data, data.split("valid"), EvalConfig(mode="kge_only"), kge=kge)
    print(f"{command.model} on {data.name}: validation MRR {result['mrr']:.3f} against 100 corruptions")
    print(f"Saved to {save_kge(kge, command.out)}.")
    if command.soft_facts is not None:
        number = write_soft_facts(command.soft_facts, kge, data, command.top_k, command.threshold)
        print(f"{number} predicted facts written to {command.soft_facts}.")
    return 0


def _training_atoms(data: str) -> list[Atom]:
    """Atoms of the training split of what `load_dataset` would read; a folder needs no rule file here."""
    from shoal.worlds.kg.lanes.data.dataset import load_dataset
    from shoal.worlds.kg.lanes.data.parse import read_atoms

    if data.partition(":")[0] in ("families", "pykeen"):
        kb = load_dataset(data).kb
        predicates, term = kb.vocabulary.predicates, kb.vocabulary.term
        return [(predicates[p], term(a), term(b)) for p, a, b in kb.facts.triples]
    if not Path(data).is_dir():
        raise ConfigError(f"There is no folder {data} to read a knowledge graph from.")
    return read_atoms(Path(data) / "train.txt")


PROVE, MINE_RULES, TRAIN_KGE = Verb(ProveCommand, prove), Verb(MineCommand, mine), Verb(KGECommand, train)
