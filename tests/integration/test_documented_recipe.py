"""Every configuration trains, and the commands of the pages on training run, at a small size."""

import shutil
from dataclasses import replace

import pytest
from support.commands import edp_mx, read
from support.documentation import ROOT, blocks, execute
from support.huggingface import PIECES, TINY, drawn, shapes_of, write_folder
from support.shrunken import beginning_of, shrunken_folder, shrunken_script

from edp_mx.config import load_config

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
CONFIGS = ROOT / "configs"
TRAINED = sorted(path.stem for path in CONFIGS.glob("*.yaml"))
MECHANISMS = sorted(path.stem for path in CONFIGS.glob("mechanism/*.yaml"))


@pytest.fixture(scope="module")
def clone(corpora, tmp_path_factory):
    """A clone's folder, in which every pre-training has ended."""
    folder = shrunken_folder(tmp_path_factory.mktemp("clone"), corpora)
    names = ["atis", "snips", "nlu_eval", "communication", "health", "video"]
    whole = folder / "text" / "whole.txt.gz"
    edp_mx("data", "text", *names, "--size", 100, "--out", whole)
    beginning_of(whole, folder / "text" / "for_dstc8.txt.gz")
    return folder


def finished(folder, name):
    """The results of a run in it."""
    return read(folder / "runs" / name, "results")


@pytest.fixture(scope="module")
def pretrained(clone):
    shutil.copy(clone / "text" / "banking77.txt.gz", clone / "text" / "public.txt.gz")
    execute("edp-mx train configs/pretrain/public_text.yaml --run runs/pretrain_public", clone)
    execute(
        "edp-mx train configs/pretrain/pretraining.yaml --run runs/pretrain_for_dstc8 "
        "--set data.path=text/for_dstc8.txt.gz",
        clone,
    )
    return clone


@pytest.mark.parametrize("name", TRAINED)
def test_each_configuration_trains(pretrained, name):
    execute(f"edp-mx train configs/{name}.yaml --run runs/each_{name}", pretrained)
    assert 0 <= finished(pretrained, f"each_{name}")["test"]["intent_accuracy"] <= 1


@pytest.mark.parametrize("name", MECHANISMS)
def test_each_mechanism_trains_a_clc_and_a_bert(pretrained, name):
    for family in ("clc", "bert"):
        run = f"{name}_{family}"
        layers = f"configs/atis_{family}.yaml configs/mechanism/{name}.yaml"
        execute(f"edp-mx train {layers} --run runs/{run}", pretrained)
        assert read(pretrained / "runs" / run, "privacy")["mechanism"] in (
            "none", "edp_sgd", "dp_sgd")  # fmt: skip


def test_the_recipe(pretrained):
    """All of its pages: pre-training, warm starts, private runs, their attacks, word vectors."""
    attacks = blocks(ROOT / "docs" / "attacks.md")[1]  # on two of the page's runs
    pages = [
        b for name in ("recipe", "without-encoder") for b in blocks(ROOT / "docs" / f"{name}.md")
    ]
    script = shrunken_script("".join([*pages, attacks]))
    made = "runs/pretrain_public merged text/public.txt.gz checkpoints"
    execute(f"rm -rf {made}\n{script}", pretrained)
    for name in ("snips_private", "communication_private"):
        assert 7.5 < read(pretrained / "runs" / name, "privacy")["holds_if"]["epsilon"] <= 8
    assert (pretrained / "runs" / "snips_private" / "attack-lira" / "report.html").exists()


def test_the_recipe_of_a_public_encoder(pretrained, corpora):
    """On slots and intents, and on the texts of two corpora as they are published."""
    execute("rm -rf checkpoints && edp-mx checkpoint fetch minilm", pretrained)
    configs = {"snips": "snips_bert"}
    configs |= {name: f"classification/{name}" for name in ("clinc150", "banking77")}
    for name, config in configs.items():
        own = f"--set data.path={corpora / name} data.size=600" if name != "snips" else ""
        layers = f"configs/{config}.yaml configs/recipe/encoder.yaml"
        execute(f"edp-mx train {layers} --run runs/e_{name} {own}", pretrained)
        privacy = read(pretrained / "runs" / f"e_{name}", "privacy")
        assert 7.5 < (privacy["holds"]["epsilon"] or privacy["holds_if"]["epsilon"]) <= 8
        assert any("all-MiniLM-L6-v2 at 1110a24, Apache-2.0" in s for s in privacy["declarations"])


@pytest.mark.parametrize("layer", sorted(CONFIGS.glob("recipe/heads_*.yaml")), ids=lambda p: p.stem)
def test_the_recipe_of_each_corpus(pretrained, layer):
    name = layer.stem.replace("heads_", "")
    start = load_config([CONFIGS / f"{name}_bert.yaml", layer]).model.start_from
    execute(
        f"edp-mx data merge video:300 --out merged/for_{name}.jsonl.gz --force && "
        f"rm -rf {start} && "
        f"edp-mx train configs/warm_start/bert.yaml --run {start} "
        f"--set data.path=merged/for_{name}.jsonl.gz && "
        f"edp-mx train configs/{name}_bert.yaml configs/recipe/{layer.name} --run runs/r_{name}",
        pretrained,
    )
    assert 7.5 < read(pretrained / "runs" / f"r_{name}", "privacy")["holds_if"]["epsilon"] <= 8


@pytest.mark.parametrize(
    "name, layers", [("health", ("bert",)), ("dstc8", ("clc", "frozen_vectors"))]
)
def test_each_warm_start_trains(pretrained, name, layers):
    run = f"runs/warm_for_{name}"
    files = " ".join(f"configs/warm_start/{layer}.yaml" for layer in layers)
    vectors = f"vectors/for_{name}.vec.gz"  # of the same words and bytes each time
    execute(
        f"edp-mx data merge video:300 --out merged/for_{name}.jsonl.gz --force && "
        "edp-mx data train-embeddings text/banking77.txt.gz --lowercase --dimension 16 "
        f"--buckets 200 --out {vectors} --force && rm -rf {run} && "
        f"edp-mx train {files} --run {run} --set data.path=merged/for_{name}.jsonl.gz",
        pretrained,
    )
    assert read(pretrained / run, "privacy")["mechanism"] == "none"


@pytest.mark.parametrize(
    "name, layer, layers",
    [("dstc8", "clc_dstc8", ("clc", "frozen_vectors")), ("health", "clc_few", ("clc",))],
)
def test_the_recipe_of_a_clc_starts_from_its_warm_start(pretrained, name, layer, layers):
    test_each_warm_start_trains(pretrained, name, layers)
    execute(
        f"edp-mx train configs/{name}_clc.yaml configs/recipe/{layer}.yaml --run runs/r_{layer} "
        f"--set model.start_from=runs/warm_for_{name}",
        pretrained,
    )
    assert 7.5 < read(pretrained / "runs" / f"r_{layer}", "privacy")["holds_if"]["epsilon"] <= 8


def test_the_pages_on_bert_and_sweeps_and_tables(pretrained):
    longer = replace(TINY, max_positions=128)
    write_folder(
        pretrained / "TinyBERT_General_4L_312D",
        drawn(shapes_of(longer, num_pieces=len(PIECES))),
        settings={"max_position_embeddings": longer.max_positions},
    )
    script = shrunken_script("".join(blocks(ROOT / "docs" / "bert.md")))
    execute(f"rm -rf checkpoints\n{script}", pretrained)
    sweeps = "".join(blocks(ROOT / "docs" / "sweeps.md"))
    made = next((pretrained / "runs").glob("atis_bert*/record.json"), None)
    assert made is not None
    execute(shrunken_script(sweeps.replace("runs/atis_clc-20260101-120000", str(made.parent))),
            pretrained)  # fmt: skip
    execute(shrunken_script("".join(blocks(ROOT / "docs" / "tables.md"))), pretrained)
    assert "<svg" in (pretrained / "results" / "report.html").read_text()
    assert (pretrained / "runs" / "table1.md").exists()
