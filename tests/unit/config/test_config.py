"""Settings: merged, typed, and refused with the key, the file and the line."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Tuple

import pytest
from support.refusals import one_sentence

from edp_mx.config import dump_config, load_config
from edp_mx.errors import UserError
from edp_mx.runtime.config_files import read_settings
from edp_mx.runtime.files import path_field

ROOT = Path(__file__).resolve().parents[3]
CONFIGS = ROOT / "configs"
MECHANISMS = sorted(CONFIGS.glob("mechanism/*.yaml"))


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def test_includes_merge_from_left_to_right_and_the_file_itself_wins(tmp_path):
    write(tmp_path, "one.yaml", "training: {epochs: 1, batch_size: 8}\nname: one")
    write(tmp_path, "two.yaml", "training: {epochs: 2, learning_rate: 1e-2}")
    path = write(tmp_path, "a.yaml", "include: [one.yaml, two.yaml]\ntraining: {seed: 5}")
    config = load_config(path, ["training.learning_rate=5e-3"])
    training = config.training
    assert (config.name, training.epochs, training.batch_size) == ("one", 2, 8)
    assert (training.seed, training.learning_rate) == (5, 5e-3)


def test_files_are_laid_over_each_other_and_the_name_follows(tmp_path):
    one = write(tmp_path, "one.yaml", "training: {epochs: 1, batch_size: 8}")
    two = write(tmp_path, "two.yaml", "training: {epochs: 2}\nprivacy: {mechanism: none}")
    three = write(tmp_path, "three.yaml", "name: other")
    config = load_config([one, two])
    assert (config.training.epochs, config.training.batch_size) == (2, 8)
    assert (config.name, config.privacy.mechanism) == ("one_two", "none")
    assert load_config(one).name == "one"
    assert load_config([one, three, two]).name == "other_two"
    assert load_config([one, two], ["name=mine"]).name == "mine"
    with pytest.raises(UserError, match=r"wrong\.yaml, line 2: training\.epochs"):
        load_config([one, write(tmp_path, "wrong.yaml", "training:\n  epochs: x")])


@pytest.mark.parametrize("text", ["", "# a comment", "name: mine", "{}"])
def test_a_configuration_that_sets_nothing_is_refused(tmp_path, text):
    path = write(tmp_path, "a.yaml", text)
    one_sentence(r"a\.yaml sets nothing; begin with", load_config, path)
    assert load_config([write(tmp_path, "b.yaml", "data: {corpus: health}"), path])
    assert load_config(path, ["data.corpus=health"]).data.corpus == "health"


def test_the_family_chooses_the_keys_of_the_model(tmp_path):
    assert load_config(write(tmp_path, "a.yaml", "model: {hidden_size: 8}")).model.family == "clc"
    path = write(tmp_path, "b.yaml", "model: {family: bert, num_layers: 2, checkpoint: here}")
    config = load_config(path, ["model.frozen_layers=1"])
    assert (config.model.num_layers, config.model.frozen_layers) == (2, 1)
    dumped = load_config(write(tmp_path, "c.yaml", dump_config(config)))
    assert dumped.model.checkpoint == str(Path("here").absolute())
    assert replace(dumped.model, checkpoint="here") == config.model


SIZES = {"num_hidden_layers": 2, "num_attention_heads": 3, "hidden_size": 24, "vocab_size": 40,
         "intermediate_size": 40, "max_position_embeddings": 80, "hidden_act": "gelu_python",
         "layer_norm_eps": 1e-5}  # fmt: skip


def sizes_of(model):
    return (model.num_layers, model.num_heads, model.hidden_size, model.intermediate_size,
            model.max_positions, model.layer_norm_epsilon)  # fmt: skip


def test_a_checkpoint_brings_its_sizes_and_its_pieces(tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(SIZES))
    theirs = (2, 3, 24, 40, 80, 1e-5)
    bert = CONFIGS / "model" / "bert.yaml"  # which sets the paper's sizes
    for key in ("checkpoint", "start_from"):
        config = load_config(bert, [f"model.{key}={folder}"])
        assert sizes_of(config.model) == theirs and config.model.activation == "gelu"
        assert config.data.vocabulary.source == "checkpoint"
    including = write(tmp_path, "a.yaml", f"include: [{bert}]\nmodel: {{checkpoint: {folder}}}")
    assert sizes_of(load_config(including).model) == theirs
    sizes = write(tmp_path, "b.yaml", f"include: [{bert.with_name('bert_sizes.yaml')}]")
    start = f"model.checkpoint={folder}"
    pretrained = load_config(sizes, [start, "task=masked_lm", "data.max_pieces=64"])
    assert sizes_of(pretrained.model) == theirs


def test_sizes_beside_the_checkpoint_are_kept(tmp_path):
    """A run's config.yaml does not change with the folder that it started from."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(SIZES))
    text = f"model: {{family: bert, num_layers: 5, checkpoint: {folder}}}"
    path = write(tmp_path, "a.yaml", text + "\ndata: {vocabulary: {source: file, path: /words}}")
    config = load_config(path)
    assert config.model.num_layers == 5 and config.model.hidden_size == 24
    assert config.data.vocabulary.source == "file"
    assert load_config(path, ["model.hidden_size=12"]).model.hidden_size == 12
    assert load_config(path, {"model.hidden_size": 12}).model.hidden_size == 12
    run = write(tmp_path, "config.yaml", dump_config(config))
    (folder / "config.json").write_text(json.dumps({**SIZES, "hidden_size": 48}))
    assert load_config(run) == config
    (folder / "config.json").write_text("{}")
    one_sentence("theirs/config.json: num_hidden_layers is missing", load_config, path)


@dataclass(frozen=True)
class Files:
    name: str = ""
    files: Tuple[str, ...] = path_field(())


def test_lists_are_lists_and_any_tree_of_settings_can_be_read(tmp_path):
    loaded = read_settings([write(tmp_path, "a.yaml", "files: [a.txt, /b.txt]")], (), kind=Files)
    assert loaded.files == ("a.txt", "/b.txt")
    dumped = read_settings([write(tmp_path, "b.yaml", dump_config(loaded))], (), kind=Files)
    assert dumped.files == (str(Path("a.txt").absolute()), "/b.txt")
    with pytest.raises(UserError, match=r"line 1: files: 'a.txt' is not a list"):
        read_settings([write(tmp_path, "c.yaml", "files: a.txt")], (), kind=Files)


@pytest.mark.parametrize("number", ["1e-6", "1.0e-6", "0.000001", ".1e-5"])
def test_small_numbers_are_numbers(tmp_path, number):
    config = load_config(write(tmp_path, "a.yaml", f"privacy: {{noise_multiplier: {number}}}"))
    assert config.privacy.noise_multiplier == pytest.approx(1e-6)


@pytest.mark.parametrize(
    "text, message",
    [
        ("training: {epoch: 3}",
         "line 1: training.epoch: there is no such key; did you mean epochs?"),
        ("name: a\nbatch: 3", "line 2: batch: there is no such key; known keys are"),
        ("training:\n  epochs: many", "line 2: training.epochs: 'many' is not a whole number"),
        ("training: {epochs: true}", "training.epochs: True is not a whole number"),
        ("training: {epochs: 0}", "training.epochs must be at least 1 and at most 100000, not 0"),
        ("data: {vocabulary: {lowercase: 'no'}}", "data.vocabulary.lowercase: 'no' is not true or"),
        ("privacy:\n  decay:\n    kind: cubic", "line 2: privacy.decay: "),
        ("privacy: {mechanism: dp_sgd, variant: published}", "the noise of Algorithm 1"),
        ("model: {family: lstm}", "1: model.family must be one of clc, bert, gpt2, not 'lstm'"),
        ("model:\n  family: bert\n  num_layer: 4",
         "line 3: model.num_layer: there is no such key; did you mean num_layers?"),
        ("training: 3", "training: 3 is not a mapping of keys"),
        ("training: {epochs: 1, epochs: 2}", "line 1: training.epochs is set twice"),
        ("a: [1", "line 1: not YAML"),
        ("name: 'a\0b'", "not YAML that can be read"),
        ("training: &a {epochs: *a}", "a.yaml"),
        ("include: other.yaml", "line 1: include: must be a list"),
        ("include: [absent.yaml]", "include: there is no "),
        (f"include: [{'a' * 5000}.yaml]", "include: there is no "),
        ("include: [a.yaml]", "includes itself"),
        ("name: !!python/object/apply:os.getcwd []", "line 1: not YAML"),  # nothing is executed
        ("privacy: {unit: user}", "unit is user, but mechanism edp_sgd clips each micro_batch"),
        ("privacy: {mechanism: dp_sgd, micro_batches_per_worker: 2}",
         "micro_batches_per_worker must be 1, because each utterance is clipped by itself, not"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_key_file_and_line(tmp_path, text, message):
    said = one_sentence("a.yaml", load_config, write(tmp_path, "a.yaml", text))
    assert message in said


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", ("edp_sgd", "micro_batch", "loop")),
        ("mechanism: dp_sgd", ("dp_sgd", "utterance", "ghost")),
        ("mechanism: dp_sgd, unit: user, clipping: loop", ("dp_sgd", "user", "loop")),
        ("mechanism: none", ("none", "micro_batch", "loop")),
    ],
)
def test_what_is_clipped_and_how(tmp_path, text, expected):
    """Left out it follows from the mechanism."""
    privacy = load_config(write(tmp_path, "a.yaml", f"privacy: {{{text}}}")).privacy
    assert (privacy.mechanism, privacy.unit, privacy.clipping) == expected
    again = load_config(write(tmp_path, "b.yaml", dump_config(load_config(tmp_path / "a.yaml"))))
    assert again.privacy == privacy


def test_the_line_is_that_of_the_included_file(tmp_path):
    write(tmp_path, "part.yaml", "\n\ntraining: {epochz: 1}")
    with pytest.raises(UserError, match=r"part\.yaml, line 3: training\.epochz"):
        load_config(write(tmp_path, "a.yaml", "include: [part.yaml]"))


@pytest.mark.parametrize(
    "override, message",
    [
        ("training.epochs", "write it as key.path=value"),
        ("training..epochs=1", "write it as key.path=value"),
        ("training.epochs=[", "the value is not YAML"),
        (
            "training.epochs=x",
            "--set training.epochs=x: training.epochs: 'x' is not a whole number",
        ),
        ("training.epochs=", "training.epochs: an empty value is not a whole number"),
        ("training.nope=1", "--set training.nope=1: training.nope: there is no such key"),
        ("trainin.epochs=1", "--set trainin.epochs=1: trainin: there is no such key; did you mean"),
    ],
)
def test_overrides_are_checked_too(tmp_path, override, message):
    path = write(tmp_path, "a.yaml", "")
    one_sentence(re.escape(message), load_config, path, [override])


def test_values_from_python_do_what_texts_do_and_stay_as_they_are(tmp_path):
    file, decay = write(tmp_path, "a.yaml", "privacy: {decay: {kind: linear}}"), {"rate": 0.25}
    texts = ["name=run \U0001f600", "training.epochs=3", "privacy.decay={rate: 0.25}",
             "privacy.decay.kind=exponential", "privacy.assume_public=[vocabulary]"]  # fmt: skip
    values = {
        "name": "run \U0001f600",
        "training.epochs": 3,
        "privacy.decay": decay,
        "privacy.decay.kind": "exponential",
        "privacy.assume_public": ("vocabulary",),
    }
    assert load_config(file, values) == load_config(file, texts)
    assert decay == {"rate": 0.25}


@pytest.mark.parametrize(
    "values, message",
    [
        ({"training.epochs": "3"}, "settings['training.epochs']: training.epochs: '3' is not a"),
        ({"training.epochs": -1}, "settings['training.epochs']: training.epochs must be at least"),
        ({"training": {"epoch": 3}}, "settings['training']: training.epoch: there is no such key"),
        ({"training..epochs": 3}, "training.: there is no such key"),
    ],
)
def test_a_value_from_python_is_refused_with_its_key(tmp_path, values, message):
    path = write(tmp_path, "a.yaml", "training: {epochs: 2}")
    one_sentence(re.escape(message), load_config, path, values)


def stem(path):
    return path.stem


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=stem)
def test_each_model_loads_alone_and_with_every_mechanism(path):
    assert load_config(path).privacy.mechanism == "none"
    for mechanism in MECHANISMS:
        config = load_config([path, mechanism])
        assert config.name == f"{path.stem}_{mechanism.stem}"
        wanted = {"sgd": "none", "dp_sgd": "dp_sgd"}.get(mechanism.stem, "edp_sgd")
        assert config.privacy.mechanism == wanted


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.yaml")), ids=stem)
def test_the_commands_in_the_headers_load(path):
    text = re.sub(r"\\\n# *", "", path.read_text())
    assert text.startswith("# ")
    for script, rest in re.findall(r"launch/(\w+)\.sh (.*)", text):
        files, _, settings = rest.partition("--set ")
        names = re.findall(r"configs/\S+\.yaml", files)
        config = load_config([ROOT / name for name in names], settings.split())
        assert (config.task == "masked_lm") == (script == "pretrain")


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*_bert.yaml")), ids=stem)
def test_the_recipe_trains_the_heads_of_each_bert_alone(path):
    files = [path, CONFIGS / "recipe" / "heads.yaml"]
    config = load_config(files, ["model.start_from=runs/warm"])
    assert config.privacy.mechanism == "dp_sgd" and config.model.trained == "heads"


@pytest.mark.parametrize("name, recipe, starts", [
    ("communication_clc", "clc", ["clc"]),
    ("health_clc", "clc", ["clc"]),
    ("video_clc", "clc", ["clc"]),
    ("dstc8_clc", "clc_dstc8", ["clc", "frozen_vectors"]),
])  # fmt: skip
def test_the_recipe_for_a_clc_fits_its_warm_start(name, recipe, starts):
    """What has another size in the warm start would be drawn anew, with nothing but a line said."""
    base = CONFIGS / f"{name}.yaml"
    private = load_config([base, CONFIGS / "recipe" / f"{recipe}.yaml"])
    layers = [CONFIGS / "warm_start" / f"{start}.yaml" for start in starts]
    public = load_config(layers)
    for key in ("character_dimension", "character_filters", "hidden_size", "num_layers"):
        assert getattr(private.model, key) == getattr(public.model, key)
    assert private.data.embeddings.dimension == public.data.embeddings.dimension
    assert private.privacy.target_epsilon == 8 and public.privacy.mechanism == "none"


@pytest.mark.parametrize("family", ["bert", "clc"])
def test_each_warm_start_has_no_privacy_and_a_bert_is_the_pre_trained_one(family):
    config = load_config(CONFIGS / "warm_start" / f"{family}.yaml", ["data.path=merged/any.jsonl"])
    assert config.model.family == family and config.privacy.mechanism == "none"
    public = load_config(CONFIGS / "pretrain" / "public_text.yaml")
    assert family == "clc" or config.model.checkpoint == f"runs/{public.name}/model"


def test_the_pre_training_makes_the_bert_that_is_fine_tuned():
    config = load_config(CONFIGS / "pretrain" / "pretraining.yaml", ["data.path=text/a.txt.gz"])
    assert config.task == "masked_lm" and config.privacy.mechanism == "none"
    fine_tuned = load_config(CONFIGS / "atis_bert.yaml", ["model.checkpoint=null"])
    assert config.model == fine_tuned.model


def test_what_a_private_gpt2_starts_from_has_another_corpus_in_name():
    """Else its report says that the start was trained on the private corpus, by name."""
    folder = CONFIGS / "causal_lm"
    names = {each.stem: load_config(each).data.corpus for each in folder.glob("*.yaml")}
    assert len(names) == 3 and len(set(names.values())) == 3
