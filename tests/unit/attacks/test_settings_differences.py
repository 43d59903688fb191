"""What a model of an attack's own has other than the run is listed, key by key."""

from dataclasses import replace

from edp_mx.attacks.settings_differences import (
    OTHER_MODEL_SETTINGS,
    OTHER_SETTINGS,
    describe_differences,
    settings_differences,
    shadow_run_facts,
    trained_model_facts,
)
from edp_mx.config import ExperimentConfig, dump_config
from edp_mx.data.config import DataConfig
from edp_mx.models.bert import BERTConfig
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_text

CONFIG = ExperimentConfig()
SHORT = replace(CONFIG.training, epochs=3)


def run_at(path, config):
    run = RunDirectory(path)
    run.create("made", dump_config(config))
    return run


def test_each_key_that_differs_is_listed_at_any_depth():
    embeddings = replace(CONFIG.data.embeddings, dimension=7)
    other = replace(
        CONFIG,
        name="another",  # no setting
        data=replace(CONFIG.data, embeddings=embeddings, max_tokens=9),
        model=replace(CONFIG.model, hidden_size=8),
        training=SHORT,
    )
    found = settings_differences(CONFIG, other)
    keys = ["data.max_tokens", "data.embeddings.dimension", "model.hidden_size", "training.epochs"]
    assert list(found) == keys
    assert found["model.hidden_size"] == {"run": CONFIG.model.hidden_size, "trained": 8}
    assert "data.max_tokens 9 instead of 64, " in describe_differences(found)
    assert settings_differences(CONFIG, CONFIG) == {} and describe_differences({}) == "none"
    found = settings_differences(CONFIG, replace(CONFIG, model=BERTConfig()))
    assert found["model.num_heads"] == {"run": None, "trained": 12}  # a key that only one has
    assert "model.num_heads 12 instead of null" in describe_differences(found)


def test_what_an_attack_trains_ends_with_the_last_epoch(tmp_path):
    """A run that took its best epoch is not repeated by its own settings, and that is told."""
    best = replace(CONFIG.training, checkpoint="best_on_validation", early_stop_patience=2)
    run, folder = run_at(tmp_path / "run", replace(CONFIG, training=best)), tmp_path / "attack-lira"
    write_text(folder / "config.yaml", dump_config(replace(CONFIG, training=best)))
    assert trained_model_facts(run, folder)[OTHER_SETTINGS] == {
        "training.checkpoint": {"run": "best_on_validation", "trained": "last"},
        "training.early_stop_patience": {"run": 2, "trained": 0},
    }
    plain = run_at(tmp_path / "plain", CONFIG)
    write_text(folder / "config.yaml", dump_config(CONFIG))
    assert trained_model_facts(plain, folder) == {OTHER_SETTINGS: {}}


def test_of_a_shadow_run_the_model_is_told(tmp_path):
    run = run_at(tmp_path / "run", CONFIG)
    model = replace(CONFIG.model, hidden_size=8)
    health = replace(CONFIG, data=DataConfig(corpus="health"), model=model, training=SHORT)
    facts = shadow_run_facts(run, run_at(tmp_path / "shadow", health))
    hidden = {"run": CONFIG.model.hidden_size, "trained": 8}
    assert facts == {"shadow family": "clc", OTHER_MODEL_SETTINGS: {"model.hidden_size": hidden}}
