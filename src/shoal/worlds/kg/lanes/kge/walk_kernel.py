"""How much weight do walks carry from one entity to others? Scalar source, see `engine.jit`.

A walker has m states. Passing an edge of relation r, it goes from state z to state y with weight step[r, z, y]; a walk
weighs the product of these, of what `first` gives its first state, and of what `last` gives its last. `mass` [K, n, m]
is what walks of 0..K - 1 edges bring to every entity in every state; only entities that are reached are ever touched.
The last edge is not walked but looked back along from the candidates, since few of all that it leads to are asked for.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from shoal.worlds.kg.lanes.engine.jit import Array, inline, jit


class Graph(NamedTuple):
    """Facts as edges, each also in the other direction as an edge of the inverse relation."""

    num_relations: int  # P; the inverse of p is p + P
    start: Array  # [n + 2] int32, edges of entity v are start[v] to start[v + 1]
    other: Array  # [E] int32
    relation: Array  # [E] int32
    share: Array  # [E] float32: an edge carries the less, the more of its relation meet at its ends


class Questions(NamedTuple):
    """Where do walks from `anchor` come to, that stand for `relation`? b questions with k candidates each."""

    anchor: Array  # [b] int32
    relation: Array  # [b] int32; above P the weights of the inverse are read from the end to the beginning
    hidden: Array  # [b] int32: the fact that leads from `anchor` by `relation` there is not walked on; 0 hides none
    candidate: Array  # [b, k] int32


class Scratch(NamedTuple):
    """Memory for one question at a time. N = n + 1 entities, R = 2 P + 1 relations."""

    mass: Annotated[Array, "float64 K N m"]
    pull: Annotated[Array, "float64 K N m"]  # gradient of the loss by `mass`
    seen: Annotated[Array, "bool K N"]
    front: Annotated[Array, "int32 K*N"]  # entities reached, by the number of edges
    end: Annotated[Array, "int64 K+1"]  # those reached by k edges are front[end[k]] to front[end[k + 1]]
    step: Annotated[Array, "float64 R m m"]  # weights in the direction of the question
    step_pull: Annotated[Array, "float64 R m m"]
    final: Annotated[Array, "float64 R m"]  # weights of a last edge, from each state to whatever state is the last
    final_pull: Annotated[Array, "float64 R m"]


@jit
def reach(graph, questions, step, first, last, scratch, out):
    """Write the weight [b, k] of all walks from each anchor to each candidate to `out`."""
    for b in range(len(questions.anchor)):
        p, forward = turn(graph, questions.relation[b], step, scratch)
        begin, finish = (first[p], last[p]) if forward else (last[p], first[p])
        anchor, relation, hidden = questions.anchor[b], questions.relation[b], questions.hidden[b]
        spread(graph, anchor, relation, hidden, begin, scratch)
        prepare_final(finish, scratch)
        for j in range(questions.candidate.shape[1]):
            v = questions.candidate[b, j]
            total = last_edge(graph, v, anchor, relation, hidden, scratch)
            for k in range(1, len(scratch.mass)):
                for z in range(len(finish)):
                    total += scratch.mass[k, v, z] * finish[z]
            out[b, j] = total
        forget(scratch)


@jit
def reach_back(graph, questions, step, first, last, scratch, out_pull, step_pull, first_pull, last_pull):
    """Add to the gradients by `step`, `first` and `last` what follows from that by `reach`'s output, `out_pull`."""
    for b in range(len(questions.anchor)):
        p, forward = turn(graph, questions.relation[b], step, scratch)
        begin, finish = (first[p], last[p]) if forward else (last[p], first[p])
        begin_pull, finish_pull = (first_pull[p], last_pull[p]) if forward else (last_pull[p], first_pull[p])
        anchor, relation, hidden = questions.anchor[b], questions.relation[b], questions.hidden[b]
        spread(graph, anchor, relation, hidden, begin, scratch)
        prepare_final(finish, scratch)
        for j in range(questions.candidate.shape[1]):
            v = questions.candidate[b, j]
            last_edge_back(graph, v, anchor, relation, hidden, out_pull[b, j], scratch)
            for k in range(1, len(scratch.mass)):
                if scratch.seen[k, v]:
                    for z in range(len(finish)):
                        scratch.pull[k, v, z] += out_pull[b, j] * finish[z]
                        finish_pull[z] += out_pull[b, j] * scratch.mass[k, v, z]
        prepare_final_back(finish, finish_pull, scratch)
        spread_back(graph, anchor, relation, hidden, scratch)
        for z in range(len(begin)):
            begin_pull[z] += scratch.pull[0, anchor, z]
        turn_back(graph, p, forward, step_pull, scratch)
        forget(scratch)


@jit
def prepare_final(finish, scratch):
    """The weights of a last edge, whatever state it leads to."""
    for r in range(len(scratch.step)):
        for z in range(len(finish)):
            scratch.final_pull[r, z] = 0.0
            scratch.final[r, z] = 0.0
            for y in range(len(finish)):
                scratch.final[r, z] += scratch.step[r, z, y] * finish[y]


@jit
def prepare_final_back(finish, finish_pull, scratch):
    for r in range(len(scratch.step)):
        for z in range(len(finish)):
            for y in range(len(finish)):
                scratch.step_pull[r, z, y] += scratch.final_pull[r, z] * finish[y]
                finish_pull[y] += scratch.final_pull[r, z] * scratch.step[r, z, y]


@inline
def inverse_of(graph, r):
    return r - graph.num_relations if r > graph.num_relations else r + graph.num_relations


@jit
def last_edge(graph, v, anchor, relation, hidden, scratch):
    """The weight of walks of K edges to `v`."""
    total, k = 0.0, len(scratch.mass) - 1
    for e in range(graph.start[v], graph.start[v + 1]):
        u, r = graph.other[e], inverse_of(graph, graph.relation[e])
        if scratch.seen[k, u] and not is_hidden(graph, u, r, v, anchor, relation, hidden):
            for z in range(scratch.mass.shape[2]):
                total += scratch.mass[k, u, z] * scratch.final[r, z] * graph.share[e]
    return total


@jit
def last_edge_back(graph, v, anchor, relation, hidden, pull, scratch):
    k = len(scratch.mass) - 1
    for e in range(graph.start[v], graph.start[v + 1]):
        u, r = graph.other[e], inverse_of(graph, graph.relation[e])
        if scratch.seen[k, u] and not is_hidden(graph, u, r, v, anchor, relation, hidden):
            for z in range(scratch.mass.shape[2]):
                scratch.pull[k, u, z] += pull * scratch.final[r, z] * graph.share[e]
                scratch.final_pull[r, z] += pull * scratch.mass[k, u, z] * graph.share[e]


@jit
def turn(graph, relation, step, scratch):
    """Weights as a walker needs them that starts where the question does; the predicate, and is that its head?"""
    P = graph.num_relations
    forward = relation <= P
    p = relation if forward else relation - P
    for r in range(1, 2 * P + 1):
        inverse = inverse_of(graph, r)
        for z in range(step.shape[2]):
            for y in range(step.shape[2]):
                scratch.step[r, z, y] = step[p, r, z, y] if forward else step[p, inverse, y, z]
                scratch.step_pull[r, z, y] = 0.0
    return p, forward


@jit
def turn_back(graph, p, forward, step_pull, scratch):
    P = graph.num_relations
    for r in range(1, 2 * P + 1):
        inverse = inverse_of(graph, r)
        for z in range(step_pull.shape[2]):
            for y in range(step_pull.shape[2]):
                if forward:
                    step_pull[p, r, z, y] += scratch.step_pull[r, z, y]
                else:
                    step_pull[p, inverse, y, z] += scratch.step_pull[r, z, y]


@inline
def is_hidden(graph, v, r, u, anchor, relation, hidden):
    """Is this the edge that answers the question, in either direction?"""
    P = graph.num_relations
    return (v == anchor and u == hidden and r == relation) or (
        v == hidden and u == anchor and (r == relation + P or r == relation - P)
    )


@jit
def spread(graph, anchor, relation, hidden, begin, scratch):
    """Walk from `anchor`: fill `mass`, `seen` and `front`."""
    mass, front, end = scratch.mass, scratch.front, scratch.end
    for z in range(len(begin)):
        mass[0, anchor, z] = begin[z]
    scratch.seen[0, anchor] = True
    front[0] = anchor
    end[0], end[1] = 0, 1
    for k in range(len(mass) - 1):
        at = end[k + 1]
        for i in range(end[k], end[k + 1]):
            v = front[i]
            for e in range(graph.start[v], graph.start[v + 1]):
                u, r = graph.other[e], graph.relation[e]
                if is_hidden(graph, v, r, u, anchor, relation, hidden):
                    continue
                if not scratch.seen[k + 1, u]:
                    scratch.seen[k + 1, u] = True
                    front[at] = u
                    at += 1
                for z in range(len(begin)):
                    carried = mass[k, v, z] * graph.share[e]
                    for y in range(len(begin)):
                        mass[k + 1, u, y] += carried * scratch.step[r, z, y]
        end[k + 2] = at


@jit
def spread_back(graph, anchor, relation, hidden, scratch):
    """From the gradient by `mass` at the candidates: that at all other entities, and that by the weights."""
    mass, pull = scratch.mass, scratch.pull
    m = mass.shape[2]
    for k in range(len(mass) - 2, -1, -1):
        for i in range(scratch.end[k], scratch.end[k + 1]):
            v = scratch.front[i]
            for e in range(graph.start[v], graph.start[v + 1]):
                u, r = graph.other[e], graph.relation[e]
                if is_idle(pull, k + 1, u) or is_hidden(graph, v, r, u, anchor, relation, hidden):
                    continue
                for z in range(m):
                    back = 0.0
                    for y in range(m):
                        scratch.step_pull[r, z, y] += mass[k, v, z] * graph.share[e] * pull[k + 1, u, y]
                        back += scratch.step[r, z, y] * pull[k + 1, u, y]
                    pull[k, v, z] += back * graph.share[e]


@inline
def is_idle(pull, k, u):
    size = 0.0
    for y in range(pull.shape[2]):
        size += abs(pull[k, u, y])
    return size == 0.0


@jit
def forget(scratch):
    """Clear what the last question touched."""
    for k in range(len(scratch.mass)):
        for i in range(scratch.end[k], scratch.end[k + 1]):
            v = scratch.front[i]
            scratch.seen[k, v] = False
            for z in range(scratch.mass.shape[2]):
                scratch.mass[k, v, z] = 0.0
                scratch.pull[k, v, z] = 0.0
