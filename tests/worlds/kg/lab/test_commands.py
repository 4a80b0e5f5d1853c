from __future__ import annotations

from shoal.cli import main
from tests.worlds.kg.lanes.data.test_dataset import COUNTRIES, write


def test_a_proof_is_printed_as_a_tree(capsys):
    assert main(["kg", "prove", "locatedInCR(palestine,asia)", "--data", str(COUNTRIES), "--count"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Proved in 3 steps:"
    assert lines[1].startswith("locatedInCR(palestine,asia)  by r2: neighborOf(X,Z)")
    assert lines[2] == "├─ neighborOf(palestine,israel)  fact"
    assert lines[4].startswith("└─ locatedInCR(")
    assert lines[5] == "Proofs of at most n steps: 1: 0, 2: 0, 3: 1"


def test_what_has_no_proof_is_said(capsys):
    assert main(["kg", "prove", "neighborOf(palestine,asia)", "--data", str(COUNTRIES)]) == 1
    assert "No proof" in capsys.readouterr().out


def test_unknown_names_are_one_sentence(capsys):
    assert main(["kg", "prove", "locatedInCR(palestina,asia)", "--data", str(COUNTRIES)]) == 2
    assert (
        capsys.readouterr().err
        == "shoal: No constant 'palestina'. Did you mean 'palestine'? The vocabulary lists all 271.\n"
    )
    assert main(["kg", "proof"]) == 2
    assert "'prove'" in capsys.readouterr().err


def test_rules_are_mined_for_a_folder_without_any(tmp_path, capsys):
    folder = write(tmp_path, train="".join(f"p(a{i},b{i})\nq(a{i},b{i})\n" for i in range(30)), valid="p(a1,b1)\n")
    (folder / "rules.txt").unlink()
    assert main(["kg", "mine-rules", "--data", str(folder), "--out", str(folder / "rules.txt")]) == 0
    assert "2 rules written" in capsys.readouterr().out
    assert "p(X,Y) -> q(X,Y)" in (folder / "rules.txt").read_text()
    assert main(["kg", "prove", "q(a3,b3)", "--data", str(folder)]) == 0


def test_an_embedding_model_is_trained_and_predicts_facts(tmp_path, capsys):
    model, soft = tmp_path / "model", tmp_path / "soft.txt"
    arguments = ["--rank", "8", "--epochs", "3", "--soft-facts", str(soft), "--threshold", "0.1"]
    assert main(["kg", "train-kge", str(model), *arguments]) == 0
    assert "validation MRR" in capsys.readouterr().out
    assert (model / "kge.safetensors").exists()
    assert soft.exists()


def test_help_of_every_verb(capsys):
    assert main(["kg"]) == 0
    assert "mine-rules" in capsys.readouterr().out
