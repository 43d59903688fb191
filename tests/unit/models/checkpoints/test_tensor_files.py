"""Weights on disk: what is read exactly, and what is refused."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from golden.make_bert_hidden_states import draw
from safetensors.numpy import load_file, save_file
from support.huggingface import SHAPES, WORDS, assert_same, drawn, write_folder
from support.refusals import one_sentence

from edp_mx.errors import UserError
from edp_mx.models.checkpoints.files import open_tensors
from edp_mx.models.checkpoints.huggingface import read_checkpoint
from edp_mx.models.gpt2 import checkpoint as gpt2


def test_half_precision_becomes_single(tmp_path):
    halves = {name: values.astype(np.float16) for name, values in drawn().items()}
    checkpoint = read_checkpoint(write_folder(tmp_path, halves))
    assert_same(checkpoint.tensors, {k: v.astype(np.float32) for k, v in halves.items()})


def test_bfloat16_becomes_single(tmp_path):
    # The upper half of a float32 is a bfloat16: the header is written by hand around such halves.
    wanted, header, data = {}, {}, b""
    for name, values in drawn().items():
        bits = values.view(np.uint32) & np.uint32(0xFFFF0000)
        wanted[name] = bits.view(np.float32)
        part = (bits >> 16).astype("<u2").tobytes()
        header[name] = {
            "dtype": "BF16",
            "shape": list(values.shape),
            "data_offsets": [len(data), len(data) + len(part)],
        }
        data += part
    text = json.dumps(header).encode()
    write_folder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    assert_same(read_checkpoint(tmp_path).tensors, wanted)


def shard(folder, weight_map_of=None):
    """Parts the weights of a folder in two."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    files = {name: f"model-{1 + i % 2}.safetensors" for i, name in enumerate(names)}
    for file in set(files.values()):
        save_file({name: tensors[name] for name in names if files[name] == file}, folder / file)
    index = {"weight_map": weight_map_of(files) if weight_map_of else files}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_weights_in_parts(tmp_path):
    assert_same(read_checkpoint(shard(write_folder(tmp_path))).tensors, drawn())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda files: {**files, "x": "../secret.safetensors"}, "secret.safetensors', which is no"),
        (lambda files: {**files, "x": "model-3.safetensors"}, "model-3.safetensors', which is no"),
        (lambda files: {}, "no weight_map"),
    ],
)
def test_an_index_that_leads_astray_is_refused(tmp_path, change, told):
    (tmp_path / "secret.safetensors").write_bytes(b"")
    one_sentence(told, read_checkpoint, shard(write_folder(tmp_path / "a"), change))


@pytest.mark.parametrize("keep", [0, 5, 300, -3])
def test_a_torn_safetensors_file_is_refused(tmp_path, keep):
    path = write_folder(tmp_path) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UserError, match="model.safetensors is damaged or not a safetensors file"):
        read_checkpoint(tmp_path)


def test_files_that_are_not_there_or_not_themselves(tmp_path):
    one_sentence("is not a folder", read_checkpoint, tmp_path / "none")
    one_sentence("cannot read .*config.json", read_checkpoint, tmp_path)
    write_folder(tmp_path / "run" / "model")
    named = "run is a run; name its checkpoint, .*run/model"
    one_sentence(named, read_checkpoint, tmp_path / "run")
    one_sentence(named, gpt2.read_checkpoint, tmp_path / "run")
    path = write_folder(tmp_path) / "model.safetensors"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
    one_sentence("is a Git LFS pointer", read_checkpoint, tmp_path)
    path.unlink()
    one_sentence("holds none of model.safetensors, .* pytorch_model.bin", read_checkpoint, tmp_path)
    (tmp_path / "vocab.txt").unlink()
    one_sentence("has no vocab.txt", read_checkpoint, tmp_path)
    (tmp_path / "config.json").write_text('{"hidden_size": 3')
    one_sentence("config.json, line 1: not JSON", read_checkpoint, tmp_path)


def pickled(folder):
    """A folder whose weights are to be in pytorch_model.bin."""
    (write_folder(folder) / "model.safetensors").unlink()
    return folder / "pytorch_model.bin"


def test_a_pickle_needs_torch_and_says_so(tmp_path, monkeypatch):
    pickled(tmp_path).write_bytes(b"any")
    monkeypatch.setitem(sys.modules, "torch", None)
    one_sentence("`pip install torch`, then `edp-mx checkpoint import", read_checkpoint, tmp_path)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.5.1+cpu"))
    one_sentence("cannot be read safely with PyTorch 2.5.1", read_checkpoint, tmp_path)


def test_a_pickle_of_tensors_is_read(tmp_path):
    torch = pytest.importorskip("torch")
    path = pickled(tmp_path)
    state = {f"bert.{name}".replace("bert.cls", "cls"): v for name, v in drawn().items()}
    torch.save({name: torch.from_numpy(values) for name, values in state.items()}, path)
    assert_same(read_checkpoint(tmp_path).tensors, drawn())
    torch.save({name: torch.from_numpy(values).bfloat16() for name, values in state.items()}, path)
    found = read_checkpoint(tmp_path).tensors
    np.testing.assert_allclose(found[WORDS], draw(WORDS, SHAPES[WORDS]), rtol=2**-8)


class Trap:
    """What a hostile pickle holds."""

    def __reduce__(self):
        return print, ("a pickle was run",)


@pytest.mark.parametrize("content", [{"a": Trap()}, Trap(), {"a": 3}, [1], b"torn"])
def test_a_pickle_of_anything_else_is_not_run(tmp_path, capsys, content):
    torch = pytest.importorskip("torch")
    path = pickled(tmp_path)
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
    one_sentence("pytorch_model.bin (is damaged or|does not hold)", open_tensors, tmp_path)
    assert "a pickle was run" not in capsys.readouterr().out
