"""Proofs can be watched, whoever finds them."""

from shoal.cli import main


def test_a_world_without_a_trained_agent_is_played_by_chance(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["play", "kg", "--num-envs", "1", "--max-steps", "2"]) == 0
    assert "play_kg_random.html" in capsys.readouterr().out
