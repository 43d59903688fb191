"""`edp-mx checkpoint` from the command line's side: a folder in, a folder out, sizes on stdout."""

import json
from functools import partial

import numpy as np
import pytest
from golden.make_bert_hidden_states import PIECES, draw
from safetensors.numpy import save_file
from support import cli, gpt2
from support.refusals import one_sentence

from edp_mx.data.origin import Origin, read_origin
from edp_mx.errors import UserError
from edp_mx.models.bert import BERTConfig
from edp_mx.models.checkpoints.huggingface import FILES, read_checkpoint
from edp_mx.models.checkpoints.names import shapes_of
from edp_mx.models.gpt2.checkpoint import read_checkpoint as read_gpt2

TINY = BERTConfig(num_layers=1, num_heads=2, hidden_size=6, intermediate_size=5, max_positions=64)

run = partial(cli.run, "checkpoint")


@pytest.fixture
def folder(tmp_path):
    """A BERT in parts, under old names, with a head that ours has no place for."""
    tensors = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma"): draw(name, shape)
        for name, shape in shapes_of(TINY, num_pieces=len(PIECES)).items()
    }
    tensors["classifier.weight"] = np.ones((2, 6), np.float32)
    here = tmp_path / "theirs"
    here.mkdir()
    save_file(tensors, here / "part.safetensors")
    index = {"weight_map": dict.fromkeys(tensors, "part.safetensors")}
    (here / "model.safetensors.index.json").write_text(json.dumps(index))
    (here / "vocab.txt").write_text("\n".join(PIECES))
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 6}
    sizes.update(intermediate_size=5, max_position_embeddings=64, vocab_size=len(PIECES))
    (here / "config.json").write_text(json.dumps(sizes))
    return here


def table(text):
    """Label → value of what is printed."""
    text = text.replace("  in lower case", "").replace("  in their own case", "")
    rows = (line.rsplit("  ", 1) for line in text.splitlines()[1:])
    return {label.strip(): value.strip() for label, value in rows}


def test_import_writes_the_normal_form_and_tells_the_sizes(folder, tmp_path, capsys):
    out = tmp_path / "ours"
    assert run("import", folder, "--out", out) == 0
    printed = capsys.readouterr()
    names = {path.name for path in out.iterdir()}
    assert names == {*FILES, "origin.json"} - {"tokenizer.json"}
    assert read_origin(out / "origin.json") == (Origin("theirs", "unknown"),)
    theirs, ours = read_checkpoint(folder), read_checkpoint(out)
    assert (ours.config, ours.tokenizer) == (theirs.config, theirs.tokenizer)
    assert ours.tensors.keys() == theirs.tensors.keys()
    for name, values in theirs.tensors.items():
        np.testing.assert_array_equal(ours.tensors[name], values)
    # By hand: pieces, positions, types; norm; 4 squares; feed-forward; 2 norms; pooler; LM head.
    layer = 4 * (36 + 6) + (30 + 5) + (30 + 6) + 2 * 12
    parameters = (40 + 64 + 2) * 6 + 12 + layer + 42 + (42 + 12 + 40)
    told = table(printed.out)
    assert told["parameters"] == str(f"{parameters:,}") and told["pieces"] == "40"
    facts = json.loads(cli.printed(capsys, "checkpoint", "describe", out, "--json"))
    assert facts["parameters"] == parameters and facts["hidden_size"] == 6 and facts["pieces"] == 40
    assert told["layers"] == "1" and told["hidden size"] == "6" and told["pooler"] == "yes"
    assert "classifier.weight" in printed.err
    assert table(cli.printed(capsys, "checkpoint", "describe", out)) == told


def test_a_gpt2_is_described_and_imported_too(tmp_path, capsys):
    theirs, ours = gpt2.write_folder(tmp_path / "theirs"), tmp_path / "ours"
    assert run("import", theirs, "--out", ours) == 0
    told = table(capsys.readouterr().out)
    before, after = map(read_gpt2, (theirs, ours))
    assert (after.config, after.tokenizer) == (before.config, before.tokenizer)
    for name, values in before.tensors.items():
        np.testing.assert_array_equal(after.tensors[name], values)
    assert told["parameters"] == f"{sum(v.size for v in before.tensors.values()):,}"
    assert told["family"] == "gpt2" and told["pieces"] == f"{len(before.tokenizer)}"
    facts = json.loads(cli.printed(capsys, "checkpoint", "describe", ours, "--json"))
    assert facts["family"] == "gpt2" and facts["num_layers"] == before.config.num_layers
    assert read_origin(ours / "origin.json") == (Origin("theirs", "unknown"),)


def test_nothing_is_overwritten(folder, tmp_path):
    with pytest.raises(UserError, match="theirs holds files already; name a new folder with --out"):
        run("import", folder, "--out", folder)
    out = tmp_path / "ours"
    out.mkdir()
    run("import", folder, "--out", out)  # an empty folder is as good as none
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    one_sentence("ours holds files already", run, "import", folder, "--out", out)
    one_sentence("config.json is a file", run, "import", folder, "--out", out / "config.json")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    (folder / "part.safetensors").write_bytes(b"torn")
    one_sentence("part.safetensors is damaged", run, "import", folder, "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()
