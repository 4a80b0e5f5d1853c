from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ConfigError
from shoal.worlds.kg.lanes.data.parse import (
    ParseError,
    parse_atom,
    parse_rule,
    read_annotated,
    read_atoms,
    read_domains,
    read_rules,
)

names = st.text("abcXYZ019_-./:", min_size=1, max_size=12)


@given(
    predicate=names, first=names, second=names, dot=st.sampled_from(["", ".", " ."]), gap=st.sampled_from(["", "  "])
)
def test_an_atom_is_read_back_whatever_its_names(predicate, first, second, dot, gap):
    text = f"{gap}{predicate}({gap}'{first}'{gap},{gap}{second}{gap}){dot}"
    assert parse_atom(text) == (predicate, first, second)


@pytest.mark.parametrize(
    "text", ["", "p", "p()", "p(a)", "p(a,b", "p(a,b,c)", "(a,b)", "p(,b)", "p(a,)", "p(a,b) q(c,d)", "p(a,b)x"]
)
def test_what_is_not_an_atom_is_refused(text):
    with pytest.raises(ParseError):
        parse_atom(text)


def test_a_rule_numbers_its_variables_head_first():
    rule = parse_rule("r1:0.75:co-occurs_with(y,Z) , /film/genre(Z,x) -> is.a(x,y)")
    assert rule.head == ("is.a", 0, 1)
    assert rule.body == (("co-occurs_with", 1, 2), ("/film/genre", 2, 0))
    assert (rule.name, rule.score, rule.num_variables) == ("r1", 0.75, 3)


def test_only_the_first_two_colons_of_a_rule_separate():
    assert parse_rule("r:23498.5:a:b(x,y) -> c:d(y,x)").body == (("a:b", 1, 0),)


@pytest.mark.parametrize(
    "text",
    [
        "p(x,y) -> q(x,y)",
        "r:x:p(x,y) -> q(x,y)",
        "r:1:p(x,y), q(x,y)",
        "r:1: -> q(x,y)",
        "r:1:p(x,y), -> q(x,y)",
        "r:1:p(x,y) q(x,y) -> r(x,y)",
        "r:1:p(x,y) -> ",
    ],
)
def test_what_is_not_a_rule_is_refused(text):
    with pytest.raises(ParseError):
        parse_rule(text)


def test_rules_print_as_they_are_read():
    rule = parse_rule("r:1:p(a,b), q(b,c) -> s(a,c)")
    assert parse_rule(f"r:1:{rule}") == rule


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_atoms, "p(a,b).\n\n% comment\np(a;b)\n"),
        (read_rules, "r:1:p(x,y) -> q(x,y)\n\n%\nr:1:p(x,y)\n"),
        (lambda path: read_annotated(path, 1), "p(a,b) 3\n\n\np(a,b) x\n"),
        (lambda path: read_annotated(path, 2), "p(a,b) 0.5 1\n\n\np(a,b)\n"),
        (read_domains, "people a b\n\n\npeople\n"),
    ],
)
def test_a_bad_line_names_file_and_line(tmp_path, read, text):
    path = tmp_path / "some.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"some\.txt:4: "):
        read(path)


def test_domains_have_members_and_predicates_may_declare_them(tmp_path):
    path = tmp_path / "domain2constants.txt"
    path.write_text("people ann bob\nplaces rome\nlives:people:places\n")
    domains = read_domains(path)
    assert domains.members == {"people": ["ann", "bob"], "places": ["rome"]}
    assert domains.of_predicate == {"lives": ("people", "places")}


def test_a_file_that_is_not_text_is_one_sentence(tmp_path):
    (tmp_path / "x.txt").write_bytes(b"p(a,b)\n\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_atoms(tmp_path / "x.txt")
    with pytest.raises(ConfigError, match="no file"):
        read_atoms(tmp_path / "y.txt")


def test_a_domain_that_is_not_defined_is_told_by_file(tmp_path):
    path = tmp_path / "domain2constants.txt"
    path.write_text("people a b\nlives:people:towns\n")
    with pytest.raises(ConfigError, match=r"domain2constants\.txt: the predicate 'lives' has the domain 'towns'"):
        read_domains(path)
