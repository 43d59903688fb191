"""`edp-mx plan`: what it says of the committed records, and that its commands do what it says."""

import json
import re
import shlex

import pytest
from support.commands import CONFIGS, ROOT, edp_mx
from support.records import changed, kept, record_of

from edp_mx.config import load_config
from edp_mx.runs.record import settings_of
from edp_mx.runs.records import collect

RECORDS = ROOT / "results"


LAYERS = ["model/bert.yaml", "recipe/heads.yaml"]


def planned(*options):
    """What `plan` prints, with commands joined as a shell does it."""
    said = edp_mx("plan", "--num-examples", 5000, "--epsilon", 4, *options).stdout
    assert {"--json", "--start-from"} & {*options} or max(map(len, said.splitlines())) <= 80
    return re.sub(r" \\\n +", " ", said)


@pytest.fixture
def of_heads(tmp_path):
    """A folder with the record of a run of the shipped recipe with some other settings."""
    others = ["data.corpus=nlu_eval", "data.vocabulary.source=checkpoint", "model.intent_weight=3",
               "privacy.target_epsilon=3", "training.batch_size=3200", "training.average.kind=none",
               "training.steps_per_epoch=7",
               f"model.start_from={tmp_path}", "privacy.assume_public=[vocabulary]"]  # fmt: skip
    settings = settings_of(load_config([CONFIGS / layer for layer in LAYERS], others))
    record = record_of("nlu_eval", n=4966, epsilon=3.0, ser=0.7)
    other = record_of("nlu_eval", n=4966, epsilon=8.0, ser=0.6)
    return kept(tmp_path / "kept", [changed(record, settings=settings), other])


def test_the_page_says_what_its_numbers_are(monkeypatch):
    monkeypatch.chdir(ROOT)
    page = planned()
    for said in ("yours may differ", "START_FROM: a public",
                 "Expect SER ", "nlu_eval_warm_bio_epsilon_3", "nlu_eval (64 intents and 54 slots)",
                 "is only what the record states"):  # fmt: skip
        assert said in " ".join(page.split()), said
    ((low, high),) = re.findall(r"SER (\d+) to (\d+) %", page)
    best = {}
    for corpus, ser in re.findall(r"- (\w+) \(.*?\): SER +([\d.]+) %", " ".join(page.split())):
        best[corpus] = min(best.get(corpus, 100), float(ser))
    assert abs(min(best.values()) - int(low)) < 0.6 and abs(max(best.values()) - int(high)) < 0.6


def test_a_corpus_without_slots_gets_what_such_corpora_gave(monkeypatch):
    monkeypatch.chdir(ROOT)
    options = ("--num-examples", 15100, "--epsilon", 8, "--intents", 151, "--slots", 0)
    page = " ".join(planned(*options).split())
    for corpus in ("clinc150 (151 intents and no slots): ", "banking77 (77 intents and no slots)"):
        assert f"- {corpus}" in page
    assert "SER" not in page.split("settings of")[0] and page.count("\n- ") <= 2
    assert "mine.yaml configs/recipe/encoder.yaml --set" in page and "task=classification" in page


def test_the_multiplier_is_that_of_calibrate_and_gives_the_epsilon(of_heads):
    found = json.loads(planned("--records", of_heads, "--json"))
    (command,) = re.findall(r"edp-mx calibrate (.*)", planned("--records", of_heads))
    calibrated = json.loads(edp_mx("calibrate", "--json", *command.split()).stdout)
    z = found["recipe"]["noise_multiplier"]
    assert "training.steps_per_epoch=7" in command.split()
    assert z == calibrated["noise_multiplier"] and found["delta"] == 1e-4
    held = json.loads(
        edp_mx("account", "--json", "--noise-multiplier", repr(z), *command.split()).stdout
    )
    assert 3.99 < held["holds"]["epsilon"] <= 4


@pytest.mark.parametrize("is_clone", [True, False])
def test_the_next_command_has_the_settings_of_the_record(is_clone, of_heads, monkeypatch):
    monkeypatch.chdir(ROOT if is_clone else of_heads)
    found = json.loads(planned("--records", of_heads, "--json"))["recipe"]
    words = shlex.split(found["command"])
    mark = words.index("--set")
    mine = of_heads / "mine.yaml"
    mine.write_text(f"include: [{CONFIGS}/model/bert.yaml]\ndata: {{corpus: nlu_eval}}\n"
                    "privacy: {assume_public: [vocabulary]}\n")  # fmt: skip
    files = [mine if word == "mine.yaml" else word for word in words[:mark] if "yaml" in word]
    assert words[:2] == (["NP=1", "launch/train.sh"] if is_clone else ["edp-mx", "train"])
    assert len(words) < 12 or not is_clone  # what the shipped layers say is not repeated
    overrides = [word.replace("START_FROM", str(of_heads.parent)) for word in words[mark + 1 :]]
    settings = settings_of(load_config(files, overrides))
    (record,) = (r for _, r in collect([of_heads]) if r.hash == found["record"])
    new = {"training.batch_size": 3222, "privacy.target_epsilon": 4.0}
    kept_settings = dict(record.settings)
    for value in (settings, kept_settings):
        value["model.start_from"] = "what lies there has changed: the records are below it"
    assert settings == {**kept_settings, **new} and found["batch_size"] == 3222


def test_a_start_that_is_given_is_that_of_the_next_command(of_heads, monkeypatch):
    monkeypatch.chdir(ROOT)
    folder = of_heads / "a start"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(
        {"num_hidden_layers": 2, "num_attention_heads": 3, "hidden_size": 24, "vocab_size": 40,
         "intermediate_size": 40}))  # fmt: skip
    page = planned("--records", of_heads, "--start-from", folder)
    assert "START_FROM" not in page
    (command,) = re.findall(r"launch/train.sh mine.yaml (.*)", page)
    words = shlex.split(command)
    model = load_config([CONFIGS / "model/bert.yaml", words[0]], words[2:]).model
    assert (str(model.start_from), model.num_layers, model.hidden_size) == (str(folder), 2, 24)


def test_other_records_and_several_seeds_are_named(tmp_path):
    seeds = [record_of("mine", n=5000, epsilon=4.0, **{"training.seed": i}) for i in (0, 1)]
    page = planned("--records", kept(tmp_path, seeds))
    assert "They are 2 runs each; yours may differ" in " ".join(page.split())


def test_what_cannot_be_told_is_refused_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    free = kept(tmp_path / "free", [record_of(mechanism="none")])
    for options, sentence in (
        ([], "the records come with the repository, not with the installed package"),
        (["--records", free], "no run of DP-SGD"),
        (["--records", RECORDS, "--num-examples", 10**6], "1,000,000 utterances are too far"),
        (["--records", RECORDS, "--num-examples", 0], "--num-examples is 0"),
        (["--records", RECORDS, "--epsilon", 0.1], "ε = 0.1 is too far"),
        (["--records", RECORDS, "--epsilon", "nan"], "--epsilon is nan"),
        (["--records", RECORDS, "--intents", 7], "--intents and --slots belong together"),
        (["--records", RECORDS, "--intents", 7, "--slots", 999], "the nearest is "),
    ):
        errors = edp_mx("plan", "--num-examples", 5000, "--epsilon", 4, *options, code=2).stderr
        assert sentence in errors and errors.count("\n") == 1
