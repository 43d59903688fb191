"""The page on one's own corpus, and those that go on from it, executed command by command."""

import json
import re
import sys

import pytest
from support.commands import edp_mx
from support.documentation import ROOT, blocks, execute, folder_of_ones_own
from support.shrunken import FILES, shrunken
from support.texts import texts, write_table

from edp_mx.data.readers import read_utterances
from edp_mx.data.synthetic import make_utterances
from edp_mx.runtime.files import write_csv

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
FIRST = 3000  # of DSTC8, as somebody's first corpus
ACCOUNT = "edp-mx account runs/again --json"
ASK_FOR_A_REPLY = (
    """\ncurl -sSf -H 'Content-Type: application/json' """
    """-d '{"text": "name = \\"Aroma\\" <|reply|>"}' http://127.0.0.1:8080/predict"""
)
URL = "http://127.0.0.1:8080"
ASK = (
    f"""\ncurl -sSf -H 'Content-Type: application/json' -d '{{"text": "call mum"}}' {URL}/predict"""
)


def served(script):
    """A script whose `edp-mx serve` is in the background, for the lines after it, until it ends."""
    serve = re.search(r"^edp-mx serve [^#\n]*", script, re.M)[0]
    wait = f"curl -sSf --retry 90 --retry-connrefused --retry-delay 1 {URL}/health"
    return script.replace(serve, f"{serve} & trap 'kill $!' EXIT\n{wait}\n")


@pytest.fixture(scope="module")
def corpus_of_ones_own(tmp_path_factory):
    utterances = make_utterances("communication", size=1200, seed=1)
    return folder_of_ones_own(tmp_path_factory.mktemp("own"), utterances)


def test_the_page_on_ones_own_corpus(corpus_of_ones_own):
    page = "".join(blocks(ROOT / "docs" / "own-corpus.md"))
    said = execute(served(page), corpus_of_ones_own)
    privacy = json.loads((corpus_of_ones_own / "runs" / "mine" / "privacy.json").read_text())
    assert 7.9 < privacy["holds"]["epsilon"] <= 8
    assert "1,200 utterances" in said  # init counts them
    assert "without privacy (mine_without_privacy): SER " in said
    assert "call my parents at 0123\n  intent  " in said
    assert '"tokens": ["call", "my", "parents"]' in said.splitlines()[-1]  # the server's answer


def test_the_readme_on_the_first_utterances_of_dstc8(corpora, tmp_path):
    """Its lines as they stand, from Python too; the scores beside their baselines; the page."""
    utterances = read_utterances(corpora / "dstc8" / "utterances.jsonl.gz")[:FIRST]
    folder_of_ones_own(tmp_path, utterances)
    section = (ROOT / "README.md").read_text().split("## Train on your own corpus")[1]
    lines = section.split("```bash\n")[1].split("```")[0]
    said = execute(served(lines + ASK), tmp_path)
    assert '"intent": ' in said.splitlines()[-1]  # the server's answer
    assert f"mine.jsonl: {FIRST:,} utterances, " in said and "What to expect with " in said
    results = json.loads((tmp_path / "runs" / "mine" / "results.json").read_text())
    privacy = json.loads((tmp_path / "runs" / "mine" / "privacy.json").read_text())
    assert 7.9 < privacy["holds"]["epsilon"] <= 8
    scored = execute("edp-mx evaluate runs/mine", tmp_path)
    assert f'always "{results["baseline"]["intent"]}" and no slots: SER ' in scored
    assert f"{100 * results['test']['ser']:.2f}" in scored
    page = (tmp_path / "runs" / "mine" / "report.html").read_text()
    assert f"{100 * results['test']['ser']:.2f} % on the test part" in page
    (tmp_path / "from_python.py").write_text(blocks(ROOT / "README.md", "python")[0])
    line, auc = execute(f"{sys.executable} from_python.py", tmp_path).splitlines()
    assert line.endswith(f" {json.loads(execute(ACCOUNT, tmp_path))['holds']['epsilon']:.6g}")
    assert 0.3 < float(auc) < 1
    answers = execute("head -5 mine.jsonl | edp-mx predict runs/mine -", tmp_path).splitlines()
    assert len(answers) == 5 and all("intent" in json.loads(answer) for answer in answers)


def test_the_page_on_attacks_goes_on_with_that_run(corpus_of_ones_own):
    if not (corpus_of_ones_own / "runs" / "mine").exists():
        pytest.skip("the run of the page on one's own corpus is not there")
    first = blocks(ROOT / "docs" / "attacks.md")[0]
    assert "AUC" in execute(first, corpus_of_ones_own)


def test_the_page_on_audits(corpus_of_ones_own):
    commands = blocks(ROOT / "docs" / "audits.md")[0].splitlines()
    for command in commands:
        if "edp_linear" in command:  # as the paper counts: refuted, exit code 1
            with pytest.raises(AssertionError, match="REFUTED: .* the published accounting claims"):
                execute(command, corpus_of_ones_own)
        elif "one-run" not in command:  # minutes long: tests/integration/test_audit_one_run.py
            execute(command, corpus_of_ones_own)


def test_the_page_on_tasks(tmp_path, generator):
    folder_of_ones_own(tmp_path, [])
    write_table(tmp_path / "reviews.tsv", texts(generator, 1000))
    page = "".join(blocks(ROOT / "docs" / "tasks.md"))
    for end, more in (("data.path=text/own.txt.gz", "model.num_layers=1"),
                      ("runs/pretrain_own/model", "training.epochs=1")):  # fmt: skip
        page = page.replace(f"{end}\n", f"{end} {more}\n")
    said = execute(page, tmp_path)
    assert "masked pieces guessed" in said
    privacy = json.loads((tmp_path / "runs" / "reviews" / "privacy.json").read_text())
    assert 7.9 < privacy["holds"]["epsilon"] <= 8
    assert "1,000 utterances" in said and "3 labels" in said
    assert 'always "praise": accuracy ' in said and "F1: macro F1" in said
    assert "a moving film with a splendid cast\n  praise  (" in said


def test_the_page_on_generation(corpora, tmp_path):
    folder_of_ones_own(tmp_path, [])
    (tmp_path / "data").symlink_to(corpora)
    rows = [(f'name = "{name}"; food = "{food}"', f"{name} serves {food} food .")
            for name in ("Aroma", "Bella", "Cosmo", "Delta") for food in ("Thai", "Greek", "French")
            for _ in range(50)]  # fmt: skip
    write_csv(tmp_path / "mine.csv", ("prompt", "reply"), rows)
    for path in (tmp_path / "configs" / "causal_lm").glob("*.yaml"):
        path.write_text(shrunken(path.read_text(), *FILES, (r"(max_words: )\d+", r"\g<1>400")))
    script = blocks(ROOT / "docs" / "generation.md")[0].replace("atis snips", "atis --size 100")
    said = execute(served(script + ASK_FOR_A_REPLY), tmp_path)
    privacy = json.loads((tmp_path / "runs" / "private_gpt2" / "privacy.json").read_text())
    assert 7.5 < privacy["holds"]["epsilon"] <= 8
    assert re.search(r"utterances +600\n", said) and "perplexity" in said and "slot errors" in said
    written = (tmp_path / "runs" / "private_gpt2" / "generated.jsonl").read_text().splitlines()
    assert all(json.loads(line)["references"] for line in written)
    edp_mx("runs", "keep", tmp_path / "runs" / "private_gpt2", "--into", tmp_path / "kept")
    record = json.loads((tmp_path / "kept" / "runs.jsonl").read_text())
    assert record["written"]["prompts"] == len(written)
    assert '"continuation": "' in said.splitlines()[-1]  # the answer of the server
    write_csv(tmp_path / "mine.csv", ("question", "answer"), rows)
    own, *of_dstc8 = blocks(ROOT / "docs" / "generation.md")[1].splitlines()
    assert re.search(r"utterances +600\n", execute(own, tmp_path))
    assert len(of_dstc8) == 2  # they want what `data fetch` downloads; its tests have a stand-in
