"""`edp-mx init`: the configuration that it writes, what it says, and what it refuses."""

import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from support import gpt2
from support.commands import CONFIGS, ROOT, TINY, edp_mx
from support.jsonl import users_corpus, write_jsonl

from edp_mx.config import dump_config, load_config
from edp_mx.data.corpus import load_corpus
from edp_mx.data.labels import labels_of
from edp_mx.data.synthetic import make_utterances
from edp_mx.runs.run_directory import RunDirectory


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A clone's folder with a corpus of 400 utterances."""
    (tmp_path / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("edp_mx.cli.init.STANDIN_SIZE", 500)  # which is quicker
    utterances = list(make_utterances("communication", size=400, seed=1))
    write_jsonl(tmp_path / "mine.jsonl", utterances)
    return utterances


def init(*options, code=0):
    done = edp_mx("init", *options, code=code)
    return done.stderr if code else done.stdout


def a_run(folder, *, family="clc", settings=()):
    """A run's folder as far as `init` looks at it."""
    files = [CONFIGS / "model" / f"{family}.yaml"]
    run = RunDirectory(folder)
    run.create("public", dump_config(load_config(files, ["data.corpus=health", *settings])))
    run.write("vocabulary", {})
    run.weights.write_bytes(b"")
    return folder


def test_it_is_ready_to_train_once_its_labels_are_public(mine):
    said = init("mine.jsonl", "--epsilon", 4)
    config = load_config("mine.yaml")
    assert (config.name, config.data.corpus, config.model.family) == ("mine", "mine", "clc")
    privacy = config.privacy
    assert (privacy.mechanism, privacy.target_epsilon, privacy.unit) == ("dp_sgd", 4, "utterance")
    corpus = load_corpus(config.data)
    sizes = [len(part) for part in (corpus.train, corpus.validation, corpus.test)]
    assert abs(sizes[0] - 320) < 5 and sum(sizes) == 400
    assert f"{sizes[0]} utterances train, {sizes[1]} validate and {sizes[2]} test" in said
    share = config.training.batch_size / sizes[0]
    assert 0.22 < share <= 0.25 and config.training.batch_size % 8 == 0
    assert config.training.epochs == 60
    words = Path("mine.words.txt").read_text().split("\n")
    public = {t for n in ("communication", "health", "video")
              for u in make_utterances(n, size=500, seed=1) for t in u.tokens}  # fmt: skip
    assert set(words) == {*public, ""}  # and none of the corpus alone
    labels = json.loads(Path("mine.labels.json").read_text())
    assert "private" in labels and labels["intents"] == sorted({u.intent for u in mine})
    errors = edp_mx("train", "mine.yaml", "--set", *TINY, "training.epochs=1", "--run", "a",
                    code=2).stderr  # fmt: skip
    assert "privacy.target_epsilon: epsilon is infinite" in errors and 'line "private"' in errors
    assert edp_mx("train", "mine.yaml", "--check", code=2).stderr == errors
    edp_mx("train", "mine.yaml", ROOT / "configs" / "recipe" / "without_privacy.yaml", "--check")
    del labels["private"]
    Path("mine.labels.json").write_text(json.dumps(labels))
    checked = edp_mx("train", "mine.yaml", "--check", "--workers", 2).stdout
    assert re.search(r"epsilon that holds    (3\.9\d+|4) ", checked) and "nothing was" in checked
    labels["intents"].pop()
    Path("mine.labels.json").write_text(json.dumps(labels))
    assert "mine.labels.json" in edp_mx("train", "mine.yaml", "--check", code=2).stderr


def test_the_next_command_can_be_copied_whatever_the_name(mine):
    said = init("mine.jsonl", "--out", "my corpus.yaml", "--labels-are-public")
    assert "next: NP=2 launch/train.sh 'my corpus.yaml' --run 'runs/my corpus'" in said


def test_what_is_read_of_the_corpus_is_said_and_fits_80_columns(mine):
    said = init("mine.jsonl")
    text = Path("mine.yaml").read_text()
    assert max(map(len, said.splitlines())) <= 80 and max(map(len, text.splitlines())) <= 100
    whole = " ".join(said.split())
    for part in ("mine.jsonl: 400 utterances, ", "No ε covers what was read of the corpus",
                 'remove its line "private". Until then training is refused.',
                 "Nothing: no corpus with about as many labels (",
                 "--start-from checkpoints/minilm", "and no slots: SER ",
                 "refused. after that: NP=2 launch/train.sh mine.yaml --run "):  # fmt: skip
        assert part in whole, part
    assert "No ε covers" in text and "Read from mine.jsonl" in text
    public = init("mine.jsonl", "--labels-are-public", "--force", "--out", "other.yaml")
    assert "\nnext: NP=2 launch/train.sh other.yaml --run runs/other\n" in f"{public}\n"
    assert "--run runs/other\n" in Path("other.yaml").read_text()
    public = init("mine.jsonl", "--labels-are-public", "--force")
    assert '"private"' not in public + Path("mine.labels.json").read_text()
    assert "public by --labels-are-public" in Path("mine.yaml").read_text()


def test_delta_is_written_and_must_be_below_one_over_n(mine):
    assert "delta is 0.01, not below 1/n = 1/3" in init("mine.jsonl", "--delta", 0.01, code=2)
    assert not Path("mine.yaml").exists()
    init("mine.jsonl", "--delta", 1e-6)
    assert load_config("mine.yaml").privacy.delta == 1e-6
    assert "1/(2n)" not in Path("mine.yaml").read_text()
    init("mine.jsonl", "--force")
    assert load_config("mine.yaml").privacy.delta is None
    assert "training part; δ is 1/(2n)." in Path("mine.yaml").read_text()


def test_measured_runs_say_what_to_expect(mine):
    (Path("results")).mkdir()
    (Path("results") / "runs.jsonl").symlink_to(ROOT / "results" / "runs.jsonl")
    write_jsonl("more.jsonl", make_utterances("communication", size=2500, seed=1))
    whole = " ".join(init("more.jsonl").split())
    assert " by runs on about as many labels (16 intents and 18 slots): Nothing near was " in whole
    assert "clc from a public start: - communication (16 intents and 18 slots): SER " in whole
    users_corpus("users.jsonl", size=600, users=100)
    whole = " ".join(init("users.jsonl", "--user-key", "user").split())
    assert "Nothing: 80 users are too far from the " in whole and "SER " not in whole.split(
        "What to expect")[1]  # fmt: skip


def test_users_are_the_unit_where_they_are_wanted(mine, tmp_path):
    users_corpus(tmp_path / "users.jsonl", size=600, users=100)
    said = init("users.jsonl")
    assert "A user says up to 6 of them" in said
    assert "100 users" in init("users.jsonl", "--user-key", "user", "--force")
    config = load_config("users.yaml")
    assert config.privacy.unit == "user" and config.training.batch_size == 16  # of 80 users
    assert "names no users" in init("mine.jsonl", "--user-key", "user", code=2)


def test_other_names_of_columns_and_users_are_written_down(mine, tmp_path):
    rows = ["said,kind,who", *(f"call {i},kind {i % 2},ann {i % 20}" for i in range(60))]
    (tmp_path / "mine.csv").write_text("\n".join(rows))
    init("mine.csv", "--user-key", "who", "--labels-are-public",
         "--columns", "text=said", "intent=kind", "slots=none")  # fmt: skip
    config = load_config("mine.yaml")
    names = config.data.columns
    assert (names.text, names.intent, names.slots, names.user) == (
        "said", "kind", "none", "who")  # fmt: skip
    assert len(load_corpus(config.data).utterances) == 60 and config.privacy.unit == "user"
    errors = init("mine.jsonl", "--user-key", "who", "--force", code=2)
    assert 'the key "who", which data.columns.user names, is missing' in errors


def test_a_corpus_without_slots_is_written_down_as_such(mine, tmp_path):
    rows = ["text,intent", *(f"call {i},{('call', 'end')[i % 2]}" for i in range(60))]
    (tmp_path / "mine.csv").write_text("\n".join(rows))
    (tmp_path / "public.csv").write_text("said,kind\nhang up,end\n")
    said = edp_mx("init", "mine.csv", "--public", "public.csv", "--public-columns", "text=said",
                  "intent=kind", "--labels-are-public").stderr  # fmt: skip
    assert said.count("mine.csv, line 1: no column") == 1
    assert load_config("mine.yaml").data.columns.slots == "none"
    assert (tmp_path / "mine.words.txt").read_text() == "hang\nup\n"
    errors = init("mine.csv", "--public", "public.csv", "--force", "--public-columns", "x=y",
                  code=2)  # fmt: skip
    assert "--public-columns x=y: write KEY=NAME" in errors


@pytest.mark.parametrize("family, sizes, layer", [
    ("clc", ["model.hidden_size=24", "data.embeddings.dimension=20"], "clc"),
    ("bert", ["model.num_layers=2", "model.hidden_size=24"], "heads"),
])  # fmt: skip
def test_a_run_to_start_from_decides_family_sizes_and_words(mine, tmp_path, family, sizes, layer):
    run = a_run(tmp_path / "a run", family=family, settings=sizes)
    said = init("mine.jsonl", "--start-from", run, "--labels-are-public")
    assert "Nothing: no corpus with about as many labels (" in said  # there are no records
    config, theirs = load_config("mine.yaml"), load_config(run / "config.yaml")
    assert config.model.start_from == str(run) and config.model.heads == "names"
    assert config.data.vocabulary.source == "checkpoint" and not Path("mine.words.txt").exists()
    same = {"hidden_size": 24, "num_layers": theirs.model.num_layers}
    assert {key: getattr(config.model, key) for key in same} == same
    if family == "clc":
        assert config.data.embeddings.dimension == 20
    assert f"configs/recipe/{layer}.yaml" in Path("mine.yaml").read_text()


def test_a_checkpoint_brings_its_own_sizes(mine, tmp_path):
    folder = tmp_path / "pretrained" / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(
        {"num_hidden_layers": 2, "num_attention_heads": 3, "hidden_size": 24, "vocab_size": 40,
         "intermediate_size": 40}))  # fmt: skip
    for given in (folder, folder.parent):
        init("mine.jsonl", "--start-from", given, "--force")
        model = load_config("mine.yaml").model
        assert (model.num_layers, model.hidden_size, model.trained) == (2, 24, "heads")
        assert (model.start_from, model.heads, model.token_layer) == (str(folder), "drawn", 1)
    init("mine.jsonl", "--start-from", folder, "--force", "--task", "classification")
    model = load_config("mine.yaml").model
    assert (model.features, model.token_layer, model.hidden_size) == ("mean", 1, 24)


def test_own_parts_other_folders_and_names_of_public_corpora(mine, tmp_path):
    (tmp_path / "atis").mkdir()
    for part, size in (("train", 90), ("test", 30)):
        write_jsonl(tmp_path / "atis" / f"{part}.jsonl",
                    [replace(u, id="") for u in mine[:size]])  # fmt: skip
    (tmp_path / "here").mkdir()
    init("atis", "--out", "here/first.yaml", "--public", "video", "--labels-are-public")
    config = load_config("here/first.yaml")
    assert (config.data.split, config.data.corpus) == ("own", "my_atis")
    assert (tmp_path / "here" / "first.words.txt").exists()
    tree = yaml.safe_load((tmp_path / "here" / "first.yaml").read_text())
    assert tree["include"][0] == "../configs/model/clc.yaml"


def test_a_list_of_labels_is_taken_if_it_has_all_labels(mine):
    edp_mx("data", "labels", "mine.jsonl", "--public", "--out", "all.json")
    init("mine.jsonl", "--labels", "all.json")
    assert load_config("mine.yaml").data.labels.path == "all.json"
    assert not Path("mine.labels.json").exists()
    labels = json.loads(Path("all.json").read_text())
    Path("all.json").write_text(json.dumps({**labels, "intents": labels["intents"][1:]}))
    errors = init("mine.jsonl", "--labels", "all.json", "--force", code=2)
    assert f"all.json lacks the label {labels['intents'][0]!r} of the training utterance" in errors


@pytest.mark.parametrize("options, sentence", [
    (["nowhere.jsonl"], "nowhere.jsonl does not exist; name a file or folder of utterances"),
    (["empty.jsonl"], "empty.jsonl holds no utterances"),
    (["few.jsonl"], "too few utterances"),
    (["replies.jsonl"], "a language model that replies starts from a public GPT-2"),
    (["mine.jsonl", "--epsilon", 0], "--epsilon is 0; it must be finite and above 0"),
    (["mine.jsonl", "--epsilon", "nan"], "--epsilon is nan; it must be finite and above 0"),
    (["mine.jsonl", "--public", "nowhere"], "nowhere: no such file or folder"),
    (["mine.jsonl", "--public", "mine.jsonl"], "--public: mine.jsonl shares files with the corpus"),
    (["folder", "--public", "folder/train.jsonl"], "train.jsonl shares files with the corpus"),
    (["mine.jsonl", "--public", "copy.txt"], "--public: copy.txt shares utterances with"),
    (["mine.jsonl", "--start-from", "nowhere"], "nowhere is not a run directory"),
    (["mine.jsonl", "--labels", "nowhere"], "cannot read nowhere"),
    (["mine.jsonl", "--out", "folder"], "--out folder is a folder; name a file"),
])  # fmt: skip
def test_what_cannot_be_is_one_sentence_and_writes_nothing(mine, tmp_path, options, sentence):
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "replies.jsonl").write_text('{"prompt": "city = Rome", "reply": "Rome, then."}')
    write_jsonl(tmp_path / "few.jsonl", mine[:2])
    copied = [f"{' '.join(each.tokens).upper()}." for each in mine[::5]]
    (tmp_path / "copy.txt").write_text("\n".join([*copied, "what nobody says"]))
    (tmp_path / "folder").mkdir()
    write_jsonl(tmp_path / "folder" / "train.jsonl", mine)
    errors = init(*options, code=2)
    assert sentence in errors and errors.count("\n") == 1
    assert not list(tmp_path.glob("*.yaml"))


def test_labels_of_a_corpus_without_intents_are_read(mine):
    init("mine.jsonl", "--columns", "intent=none", "--labels-are-public")
    assert json.loads(Path("mine.labels.json").read_text())["intents"] == [""]
    config = load_config("mine.yaml")
    train = load_corpus(config.data).train
    assert labels_of(train, config.data.labels, ())[1] == ("",)


def test_a_run_on_the_corpus_itself_is_no_public_start(mine, tmp_path):
    run = a_run(tmp_path / "run", settings=["data.corpus=mine", "data.path=mine.jsonl"])
    errors = init("mine.jsonl", "--start-from", run, code=2)
    assert "was trained on mine.jsonl itself, which is private; start from" in errors


def test_what_a_model_is_to_start_from_is_looked_at_before_the_corpus_is_counted(mine):
    Path("mine.jsonl").write_text("no JSON")
    assert "nowhere is not a run directory" in init("mine.jsonl", "--start-from", "nowhere", code=2)


def test_nothing_is_written_over_without_force(mine):
    for name in ("mine.yaml", "mine.words.txt", "mine.labels.json"):
        Path(name).write_text("precious")
        errors = init("mine.jsonl", code=2)
        assert f"{name} is there already; name another file with --out" in errors
        assert [path.name for path in Path().glob("mine.[ywl]*")] == [name]
        assert Path(name).read_text() == "precious"
        Path(name).unlink()


def test_outside_of_a_clone_it_says_where_the_recipes_are(mine):
    Path("configs").unlink()
    errors = init("mine.jsonl", code=2)
    assert "yaml here: the recipes come with the repository" in errors
    shutil.rmtree("configs", ignore_errors=True)
    assert not Path("mine.yaml").exists()


@pytest.mark.parametrize("name", ["b.x\nseed: 5\n#.jsonl", "b\u2028seed: 5.jsonl", "b\x85.jsonl"])
def test_a_name_that_cannot_stand_in_a_comment_is_refused(mine, name):
    Path("mine.jsonl").rename(name)
    errors = init(name, code=2)
    assert f"{name!r} has characters that cannot be printed: rename it" in errors
    assert not list(Path().glob("*.yaml"))


def test_the_corpus_is_not_written_over(mine):
    content = Path("mine.jsonl").read_bytes()
    Path("mine.labels.json").write_bytes(content)
    for corpus, out in (("mine.jsonl", "mine.jsonl"), ("mine.labels.json", "mine.yaml")):
        errors = init(corpus, "--labels-are-public", "--force", "--out", out, code=2)
        assert f"{corpus} is the corpus itself" in errors
        assert Path(corpus).read_bytes() == content


def test_a_name_with_marks_of_yaml_is_read_as_it_is(mine):
    Path("mine.jsonl").rename("a #b: [c].jsonl")
    Path("x, y").mkdir()
    init("a #b: [c].jsonl", "--out", 'x, y/é \'"1e3".yaml')
    head = Path('x, y/é \'"1e3".yaml').read_text().replace("\\\n#", "").splitlines()
    commands = [shlex.split(line[2:]) for line in head if line.startswith("#   ")]
    assert [command[2] for command in commands] == ['x, y/é \'"1e3".yaml'] * 3
    assert [command[-1] for command in commands[1:]] == [
        'runs/é \'"1e3"', 'runs/é \'"1e3"_without_privacy']  # fmt: skip
    config = load_config('x, y/é \'"1e3".yaml')
    assert (config.name, config.data.path) == ("a #b: [c]", "a #b: [c].jsonl")
    assert config.data.labels.path == 'x, y/é \'"1e3".labels.json'


@pytest.fixture
def replies(mine):
    """A table of prompts with replies, and a GPT-2 that a run has made."""
    rows = [
        {"prompt": f"x = {i}", "reply": f"It is {i} .", "user": f"u{i // 2}"} for i in range(60)
    ]
    Path("replies.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    gpt2.write_folder(Path("public") / "model")
    return ("replies.jsonl", "--start-from", "public")


def test_prompts_with_replies_are_for_a_language_model(replies):
    said = init(*replies)
    config = load_config("replies.yaml")
    assert (config.task, config.model.family) == ("causal_lm", "gpt2")
    assert config.model.checkpoint == "public/model"
    assert (config.privacy.target_epsilon, config.training.batch_size) == (8, 16)
    assert len(load_corpus(config.data).train) == 48
    assert not Path("replies.labels.json").exists() and "labels" not in said
    assert "60 utterances" in said and "A user says up to 2" in said
    init(*replies, "--user-key", "user", "--force")
    assert load_config("replies.yaml").privacy.unit == "user"


def test_texts_that_will_be_cut_are_counted(replies):
    assert "will be cut" not in init(*replies)
    with Path("replies.jsonl").open("a") as file:
        for prompt in "ab":
            row = {"prompt": prompt, "reply": "so " * 63, "user": prompt}
            file.write(f"{json.dumps(row)}\n")
    said = " ".join(init(*replies, "--force").split())
    assert "2 of 62 have more than 64 tokens, and will be cut: raise data.max_tokens" in said


@pytest.mark.parametrize(("positions", "read"), [(60, 60), (100, 100), (1024, 100)])
def test_no_more_pieces_are_read_than_a_checkpoint_has_positions(replies, positions, read):
    gpt2.write_folder(Path("public") / "model", settings={"n_positions": positions})
    init(*replies)
    assert load_config("replies.yaml").data.max_pieces == read
    assert ("max_pieces" in Path("replies.yaml").read_text()) == (positions < 100)


def test_a_language_model_needs_a_gpt2_and_no_labels(replies):
    table, *start = replies
    assert "starts from a public GPT-2: name it by --start-from" in init(table, code=2)
    assert "leave out --labels" in init(*replies, "--labels-are-public", code=2)
    assert "public/model is a GPT-2, which task: intent_slot does not fit" in init(
        "mine.jsonl", *start, code=2
    )
    named = ("--task", "causal_lm", "--start-from", a_run(Path("clc")))
    assert "starts from a public GPT-2" in init(table, *named, code=2)
    assert not Path("replies.yaml").exists()
