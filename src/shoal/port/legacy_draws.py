"""Draws from a `RandomState`: the names that it has for them, from the lane's own MT19937."""

from __future__ import annotations

from shoal.port.draws import Draws
from shoal.port.refusal import Cannot
from shoal.port.values import PY_INT, Const, Num, Value


class LegacyDraws(Draws):
    """How the random numbers of old are followed."""

    def shape_of(self, arguments: list[Value]) -> list[Value]:
        """`rand(3, 2)` has its shape in its arguments."""
        return [Const(tuple(n for a in arguments for n in self.sizes(a)))] if arguments else []

    def legacy_random_sample(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.draw_random(arguments, named)

    legacy_random = legacy_random_sample

    def legacy_rand(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.draw_random(self.shape_of(arguments), {})

    def legacy_uniform(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.draw_uniform(arguments, named)

    def legacy_randint(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        drawn = self.draw_integers(arguments, named)
        return Num(drawn.expr, PY_INT) if isinstance(drawn, Num) and "dtype" not in named else drawn

    def legacy_normal(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.draw_normal(arguments, named)

    def legacy_standard_normal(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.draw_standard_normal(arguments, named)

    def legacy_randn(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.draw_standard_normal(self.shape_of(arguments), {})

    def legacy_choice(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        (replaces,) = self.given(
            arguments[2:3], {k: v for k, v in named.items() if k == "replace"}, ["replace"], [True]
        )
        if not (isinstance(replaces, Const) and replaces.value):
            raise Cannot("chooses without return from a RandomState", "Take the first of permutation(n).")
        return self.draw_choice(arguments, named)

    def legacy_shuffle(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.draw_shuffle(arguments, named)

    def legacy_permutation(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.draw_permutation(arguments, named)
