"""The baseline without privacy: texts that words decide are told, texts that none does are not."""

import pytest
from support.jsonl import write_jsonl

from edp_mx.data.synthetic import make_utterances
from experiments.bag_of_words import best_score
from experiments.command import main


@pytest.fixture
def labels(generator):
    return [list(generator.choice(["praise", "blame"], size)) for size in (80, 20, 200)]


@pytest.mark.parametrize(("word", "least", "most"), [("is", 1.0, 1.0), ("was", 0.35, 0.65)])
def test_a_word_that_decides(generator, labels, word, least, most):
    """Only "is" comes with the label; the rest of each text is drawn."""
    texts = [
        [
            f"it {word} {label if word == 'is' else ''} {generator.integers(10)} times"
            for label in part
        ]
        for part in labels
    ]
    right, _ = best_score(texts, labels)
    assert least <= right <= most


def test_the_page_has_a_row_for_each_configuration(tmp_path, capsys):
    write_jsonl(tmp_path / "mine.jsonl", make_utterances("health", size=300, seed=1))
    config = tmp_path / "mine.yaml"
    config.write_text("data: {corpus: mine, path: mine.jsonl, split: 80/10/10}\n")
    config.write_text(config.read_text().replace("mine.jsonl", str(tmp_path / "mine.jsonl")))
    page = tmp_path / "page.md"
    assert main("bag_of_words", [str(config), "--out", str(page)]) == 0
    printed = capsys.readouterr().out.strip()
    assert printed in page.read_text() and "| mine   | 240 |" in printed
