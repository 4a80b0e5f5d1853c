"""SLD resolution as a book writes it: terms are strings, substitutions are dicts. Slow, and written independently."""

from __future__ import annotations

from collections.abc import Iterator

Term = str  # variables begin with "?"
Goal = tuple[str, Term, Term]
State = tuple[Goal, ...]


def walk(term: Term, binding: dict[Term, Term]) -> Term:
    while term in binding:
        term = binding[term]
    return term


def unify(one: Goal, other: Goal) -> dict[Term, Term] | None:
    if one[0] != other[0]:
        return None
    binding: dict[Term, Term] = {}
    for a, b in zip(one[1:], other[1:], strict=True):
        a, b = walk(a, binding), walk(b, binding)
        if a == b:
            continue
        if a.startswith("?"):
            binding[a] = b
        elif b.startswith("?"):
            binding[b] = a
        else:
            return None
    return binding


def apply(goals: State, binding: dict[Term, Term]) -> State:
    return tuple((p, walk(a, binding), walk(b, binding)) for p, a, b in goals)


def canonical(goals: State) -> State:
    names: dict[Term, Term] = {}
    for goal in goals:
        for term in goal[1:]:
            if term.startswith("?"):
                names.setdefault(term, f"?{len(names) + 1}")
    return tuple((p, names.get(a, a), names.get(b, b)) for p, a, b in goals)


def successors(state: State, facts: set[Goal], rules: list[tuple[State, Goal]], excluded: Goal) -> Iterator[State]:
    """All successors of the leftmost goal, with repeats; the empty state is a proof."""
    first, rest = state[0], state[1:]
    choices = [(body, head) for body, head in rules] + [((), fact) for fact in sorted(facts) if fact != excluded]
    for body, head in choices:
        fresh = {term: f"{term}'" for goal in (*body, head) for term in goal[1:] if term.startswith("?")}
        binding = unify(apply((head,), fresh)[0], first)
        if binding is not None:
            goals = apply(apply(body, fresh) + rest, binding)
            yield canonical(tuple(goal for goal in goals if goal not in facts or goal == excluded))


def steps_to_proof(
    query: Goal, facts: set[Goal], rules: list[tuple[State, Goal]], max_depth: int, max_atoms: int
) -> int:
    """Fewest steps to a proof, or -1."""
    layer, seen = {(query,)}, {(query,)}
    for depth in range(1, max_depth + 1):
        following: set[State] = set()
        for state in layer:
            for successor in successors(state, facts, rules, query):
                if not successor:
                    return depth
                if len(successor) <= max_atoms and successor not in seen:
                    following.add(successor)
        seen |= following
        layer = following
    return -1
