"""What is damaged, and by what it is then read: each subject makes its files once."""

import gzip
import io
import json
import os
import random
import shutil
from functools import lru_cache, partial

import numpy as np
from fuzz.damage import damaged, damaged_json
from support.huggingface import write_folder
from support.made_ledgers import plan_with, poisson_plan, write_plan
from support.replies import PERSONA_CHAT, write_tables, write_triples, write_turns

from edp_mx.cli.predict import _answer_stream
from edp_mx.config import dump_config, load_config
from edp_mx.data.embeddings import EmbeddingsConfig, load_embeddings, read_embedding_words
from edp_mx.data.readers import read_utterances
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.splits import PARTS, Split, split_by_keys
from edp_mx.data.strata import keys_of
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.accounting.ledger import LedgerFile
from edp_mx.dp.accounting.ledger_account import account_for
from edp_mx.errors import UserError
from edp_mx.models.checkpoints.huggingface import read_checkpoint
from edp_mx.runs.run_directory import RunDirectory

WORDS = ["call", "mum", "wëather", "天気", "a"]


class Subject:
    """Files, and a reader of them that may refuse them with a UserError and do nothing else.

    Args:
        folder: for the files as they should be.
    """

    damage = staticmethod(damaged)

    def __init__(self, folder):
        self.whole, self.folder = folder / "whole", folder / "damaged"
        self.whole.mkdir(parents=True, exist_ok=True)
        self.make(self.whole)
        self.files = sorted(p for p in self.whole.rglob("*") if p.is_file())
        shutil.copytree(self.whole, self.folder, dirs_exist_ok=True)
        self.contents = {path: path.read_bytes() for path in self.files}
        self.read(self.folder)  # what is whole is not refused

    def targets(self):
        """The files that may be damaged."""
        return self.files

    def case(self, seed):
        """Damage a file and read all; return whether it was taken."""
        draw = random.Random(f"{type(self).__name__} {seed}")
        target = draw.choice(self.targets())
        place = self.folder / target.relative_to(self.whole)
        place.write_bytes(self.damage(self.contents[target], draw))
        try:
            self.read(self.folder)
            return True
        except UserError as error:
            assert "\n" not in str(error).replace("\\n", ""), f"several lines: {error}"
            assert len(str(error)) < 5000 and "\x1b" not in str(error)
            return False
        finally:
            place.write_bytes(self.contents[target])


class Configurations(Subject):
    """YAML that includes YAML."""

    def make(self, folder):
        (folder / "mine.yaml").write_text(
            "name: mine\ninclude: [part.yaml]\ndata: {corpus: health, size: 300}\n"
            "model: {family: clc, hidden_size: 8}\ntraining:\n  epochs: 3\n  learning_rate: 1e-3\n"
            "privacy: {mechanism: dp_sgd, noise_multiplier: 1.0, sampler: poisson}\n"
        )
        (folder / "part.yaml").write_text(
            "privacy:\n  adjacency: zero_out\n  delta: 1e-5\n  decay: {kind: linear, rate: 0.1}\n"
            "data:\n  split: {train: 0.8, validation: 0.1, test: 0.1}\n"
            "training: {schedule: {kind: linear}, average: {kind: ema, decay: 0.9}}\n"
        )

    def targets(self):
        return [path for path in self.files if path.name in ("mine.yaml", "part.yaml")]

    def read(self, folder):
        config = load_config(folder / "mine.yaml")
        dump_config(config)
        RunDirectory.choose(config.name, folder)


class Ledgers(Subject):
    """Ledgers of both samplers; what is taken without a word has at least the true ε."""

    damage = staticmethod(damaged_json)

    def make(self, folder):
        write_plan(folder / "a.jsonl", plan_with(), scales=[1.0, 0.5])
        write_plan(folder / "b.jsonl", poisson_plan({"adjacency": "zero_out"}), scales=[1.0])
        self.mark = {}
        for name, plan in self.plans().items():
            self.mark[name] = LedgerFile(folder / name, plan, mark=None).mark()

    def plans(self):
        return {"a.jsonl": plan_with(), "b.jsonl": poisson_plan({"adjacency": "zero_out"})}

    @lru_cache(maxsize=None)  # noqa: B019 (one object in all)
    def true(self, name):
        return self.cost(self.whole / name)

    def cost(self, path):
        account = account_for(path)
        said = list(account.differences)
        return (account.spent.holds_if.epsilon.log, account.plan.delta, account.plan.num_records,
                said)  # fmt: skip

    def read(self, folder):
        for name, plan in self.plans().items():
            if (folder / name).read_bytes() == (self.whole / name).read_bytes():
                continue
            try:
                epsilon, *facts, said = self.cost(folder / name)
                true, *true_facts, _ = self.true(name)
                is_sound = epsilon >= true - 1e-9 and facts == true_facts
                assert said or is_sound, f"a smaller ε: {epsilon} {true}"
            finally:
                self.resume(folder / name, plan, self.mark[name])

    def resume(self, path, plan, mark):
        """A run goes on only where what the checkpoint confirms is unchanged."""
        content = path.read_bytes()
        try:
            LedgerFile(path, plan, mark=mark)
        except UserError:
            return
        whole = (self.whole / path.name).read_bytes()
        assert content[: mark.size] == whole[: mark.size], "a changed ledger goes on"


class Weights(Subject):
    """`.npz` files of weights and of a checkpoint."""

    def make(self, folder):
        from support.models import tiny_model

        from edp_mx.dp.weights import save_weights, write_arrays

        self.model = tiny_model()
        save_weights(self.model, folder / "weights.npz")
        arrays = {"facts/epochs": np.array(3), "weights/a": np.ones((3, 4), np.float32)}
        write_arrays(folder / "packed.npz", arrays, compress=True)

    def read(self, folder):
        from edp_mx.dp.weights import load_weights
        from edp_mx.runtime.npz import read_arrays

        load_weights(self.model, folder / "weights.npz")
        read_arrays(folder / "packed.npz", "a checkpoint")


class Checkpoints(Subject):
    """A BERT in Hugging Face's layout: safetensors, settings, vocabulary."""

    def make(self, folder):
        write_folder(folder, tokenizer={"do_lower_case": True, "model_max_length": 16})

    def damage(self, content, draw):
        is_json = content.startswith(b"{")
        return (damaged_json if is_json else damaged)(content, draw)

    def read(self, folder):
        read_checkpoint(folder)


class Vectors(Subject):
    """Word vectors as text, plain and compressed."""

    def make(self, folder):
        draw = np.random.default_rng(1)
        rows = [f"{word} {' '.join(f'{x:.4f}' for x in draw.normal(size=6))}" for word in WORDS]
        text = "\n".join([f"{len(rows)} 6", *rows, ""]).encode()
        (folder / "a.vec").write_bytes(text)
        (folder / "b.vec.gz").write_bytes(gzip.compress(text, mtime=0))

    def read(self, folder):
        for name in ("a.vec", "b.vec.gz"):
            list(read_embedding_words(folder / name))
            _, matrix = load_embeddings(EmbeddingsConfig(str(folder / name), 6), WORDS)
            assert np.isfinite(matrix).all()


class Models(Subject):
    """fastText's models, as fastText would write them."""

    def make(self, folder):
        (folder / "a.bin").write_bytes(fasttext_model(WORDS, dimension=6, buckets=20))

    def read(self, folder):
        found, matrix = load_embeddings(EmbeddingsConfig(str(folder / "a.bin"), 6), WORDS)
        assert found == tuple(WORDS) and np.isfinite(matrix).all() and matrix.any()


def fasttext_model(words, *, dimension, buckets):
    """The bytes of a small model."""
    import struct

    draw, size = np.random.default_rng(2), len(words)
    settings = struct.pack("<12id", dimension, 5, 5, 1, 5, 1, 2, 2, buckets, 3, 6, 100, 1e-4)
    parts = [struct.pack("<ii", 793712314, 12), settings]
    parts.append(struct.pack("<iiiqq", size, size, 0, 999, -1))
    parts += [word.encode() + b"\0" + struct.pack("<qb", 9, 0) for word in words]
    for rows in (size + buckets, size):
        values = draw.normal(size=(rows, dimension)).astype("<f4")
        parts += [b"\0", struct.pack("<qq", rows, dimension), values.tobytes()]
    return b"".join(parts)


class Corpus(Subject):
    """A corpus of a few utterances in one layout."""

    layout = ""
    columns = None

    def utterances(self):
        return list(make_utterances("health", size=6, seed=3))

    def read(self, folder):
        for utterance in read_utterances(folder, self.layout, columns=self.columns):
            "".join((*utterance.tokens, *utterance.slots, utterance.intent)).encode("utf-8")
            assert len(utterance.tokens) == len(utterance.slots) > 0


def lines_of(utterances):
    return [
        {"tokens": list(u.tokens), "slots": list(u.slots), "intent": u.intent, "id": u.id}
        for u in utterances
    ]


class JSONLines(Corpus):
    layout = "json_lines"
    damage = staticmethod(damaged_json)

    def make(self, folder):
        text = "".join(json.dumps(line) + "\n" for line in lines_of(self.utterances()))
        (folder / "a.jsonl").write_text(text)
        spans = {"text": "call my mum", "intent": "call", "user": "u",
                 "spans": [{"start": 8, "end": 11, "label": "who"}]}  # fmt: skip
        (folder / "b.jsonl").write_text(f"{json.dumps(spans)}\n" * 3)
        (folder / "c.jsonl.gz").write_bytes(gzip.compress(json.dumps(spans).encode(), mtime=0))


class Tables(Corpus):
    layout = "table"

    def make(self, folder):
        rows = [(" ".join(u.tokens), " ".join(u.slots), u.intent) for u in self.utterances()]
        for name, mark in (("a.csv", ","), ("b.tsv", "\t"), ("c.csv", ";")):
            lines = [mark.join(('"tokens"', "slots", "intent")), *map(mark.join, rows)]
            (folder / name).write_text("\n".join(lines))


class Text(Corpus):
    layout = "text"
    columns = ColumnsConfig(intent="none")

    def make(self, folder):
        lines = "\n".join(" ".join(u.tokens) for u in self.utterances())
        (folder / "a.txt").write_text(lines)
        (folder / "b.txt.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))


class Parallel(Corpus):
    layout = "three_files"

    def make(self, folder):
        columns = {"seq.in": [" ".join(u.tokens) for u in self.utterances()],
                   "seq.out": [" ".join(u.slots) for u in self.utterances()],
                   "label": [u.intent for u in self.utterances()],
                   "user": ["a"] * 6}  # fmt: skip
        for name, lines in columns.items():
            (folder / name).write_text("\n".join(lines) + "\n")


class NLUEval(Corpus):
    layout = "nlu_eval"

    def make(self, folder):
        (folder / "a.csv").write_text(
            "userid;scenario;intent;status;answer_annotation\n"
            '1;alarm;set;;"wake me at [time : 5 am]"\n'
            '2;alarm;set;IRR;no\n3;play;music;;play [artist : the "who"] [song:x]\n'
        )


class SNIPS(Corpus):
    layout = "snips_json"
    damage = staticmethod(damaged_json)

    def make(self, folder):
        chunks = [
            {"text": "play "},
            {"text": "Rom", "entity": "artist"},
            {"text": "á", "entity": "artist"},
        ]
        for part in ("train_Play_full", "validate_Play"):
            (folder / "Play").mkdir(exist_ok=True)
            (folder / "Play" / f"{part}.json").write_text(
                json.dumps({"Play": [{"data": chunks}] * 3})
            )


class CLINC(Corpus):
    layout = "clinc_json"
    damage = staticmethod(damaged_json)

    def make(self, folder):
        parts = [f"{before}{part}" for part in ("train", "val", "test") for before in ("", "oos_")]
        pairs = [["wake me", "alarm"], ["play jazz", "music"]]
        (folder / "data_full.json").write_text(json.dumps(dict.fromkeys(parts, pairs), indent=1))


class Conll(Corpus):
    layout = "conll"

    def make(self, folder):
        blocks = [
            "".join([f"# id: {u.id}\n# intent: {u.intent}\n",
                     *(f"{at}\t{token}\t{u.intent}\t{tag}\n"
                       for at, (token, tag) in enumerate(zip(u.tokens, u.slots), start=1))])
            for u in self.utterances()
        ]  # fmt: skip
        (folder / "a.conll").write_text("\n".join(blocks))
        (folder / "b.conll.gz").write_bytes(gzip.compress(blocks[0].encode(), mtime=0))


class Rasa(Corpus):
    layout = "rasa_yaml"

    def make(self, folder):
        (folder / "nlu.yml").write_text(
            'version: "3.1"\nnlu:\n- intent: call\n  examples: |\n    - call [mum](who:mother)\n'
            '    - [mum]{"entity": "who", "role": "to"} please\n- intent: end\n  examples:\n'
            "  - text: |\n      hang up\n- synonym: mother\n  examples: |\n    - mum\n"
        )


class Parquet(Corpus):
    layout = "parquet"

    def make(self, folder):
        import pyarrow
        from pyarrow import parquet

        table = pyarrow.Table.from_pylist(lines_of(self.utterances()))
        for name, kind in (("a", "snappy"), ("b", "none")):
            parquet.write_table(table, folder / f"{name}.parquet", compression=kind)


class Dialogues(Corpus):
    layout = "dstc8"
    damage = staticmethod(damaged_json)

    def make(self, folder):
        action = {"act": "INFORM_INTENT", "values": ["FindBus"], "slot": "intent"}
        slot = {"slot": "city", "start": 3, "exclusive_end": 9}
        turn = {"speaker": "USER", "utterance": "To Fresno, at 18:30",
                "frames": [{"slots": [slot], "actions": [action]}]}  # fmt: skip
        system = {"speaker": "SYSTEM", "utterance": "When?", "frames": []}
        dialogue = {"dialogue_id": "1_0", "turns": [turn, system, turn]}
        (folder / "dialogues_001.json").write_text(json.dumps([dialogue], indent=1))


class SystemTurns(Corpus):
    layout = "system_turns"
    damage = staticmethod(damaged_json)

    def make(self, folder):
        write_turns(folder / "train.jsonl")
        write_turns(folder / "test.jsonl")


class MeaningTables(Corpus):
    layout = "e2e"

    def make(self, folder):
        write_tables(folder / "trainset.csv")


class Triples(Corpus):
    layout = "dart_json"
    damage = staticmethod(damaged_json)

    def make(self, folder):
        write_triples(folder / "dart-v1.1.1-full-dev.json")


class PersonaChat(Corpus):
    layout = "persona_chat"

    def make(self, folder):
        (folder / "valid_self_original.txt").write_text(PERSONA_CHAT)


class Runs(Subject):
    """The files of a finished run."""

    damage = staticmethod(damaged_json)

    def make(self, folder):
        from edp_mx.dp.accounting.guarantee import guarantee
        from edp_mx.metrics.evaluation import evaluate
        from edp_mx.runs.record import make_record
        from edp_mx.tasks.intent_slot.task import INTENT_SLOT

        self.utterances = list(make_utterances("health", size=60, seed=3))
        run, split = RunDirectory(folder), split_by_keys(*keys_of(self.utterances), seed=1)
        plan = plan_with(num_records=len(split.train), delta=0.5 / len(split.train))
        (folder / "mine.yaml").write_text(
            "name: mine\ndata: {corpus: health, size: 60}\nmodel: {family: clc, hidden_size: 8}\n"
            "training: {epochs: 4, batch_size: 64}\nprivacy: {noise_multiplier: 8.0}\n"
        )
        run.config.write_text(dump_config(load_config(folder / "mine.yaml")))
        (folder / "mine.yaml").unlink()
        write_plan(run.ledger, plan, scales=[1.0])
        split.write(folder / "split.json", self.utterances)
        scores = evaluate(self.utterances, self.utterances)
        row = {"epoch": 1, "loss": 2.0, "seconds": 1.0, "ser": 50.0, "intent_accuracy": 50.0,
               "slot_f1": 50.0, "noise_multiplier": 8.0, "epsilon": 3.0}  # fmt: skip
        run.metrics.write_text(
            "".join(json.dumps({**row, "epoch": i}) + "\n" for i in (1, 2, 3, 4))
        )
        run.write("privacy", guarantee(plan, plan.entries()).to_dict())
        keyed = {"key": "k", "digest": "a"}
        run.write("environment", {"num_workers": 2, "command": ["edp-mx"], "started": "2026-01-02T",
                  "packages": {"mxnet": "1.9.1"}, "fingerprints": dict.fromkeys(PARTS, keyed),
                  "machine": "Linux", "cores": 2})  # fmt: skip
        run.write("vocabulary", Vocabulary.build(self.utterances).to_json())
        run.write("layers", [{"name": "a", "size": 3, "parameters": ["a"], "scale": 1.0}])
        run.write("results", {"test": scores.to_dict(), "training_seconds": 3.0,
                  "baseline": INTENT_SLOT.constant_answer(self.utterances)})  # fmt: skip
        run.write("record", make_record(run, load_config(run.config), run.read("results")))

    def read(self, folder):
        from edp_mx.reports.summary import compare, run_as_json
        from edp_mx.reports.watch_screen import screen
        from edp_mx.runs.interrupted import resumes_with
        from edp_mx.runs.records import collect, select

        run, found = RunDirectory.existing(folder), []
        split = partial(lambda: Split.from_json(run.read("split"), self.utterances))
        steps = [
            split, lambda: Vocabulary.from_json(run.read("vocabulary")), run.epochs,
            run.resume_command, lambda: resumes_with(run), lambda: screen(run),
            lambda: compare([run]), lambda: json.dumps(run_as_json(run), allow_nan=False),
            lambda: select(collect([folder]), ["delta=1"], "date"),
        ]  # fmt: skip
        for step in steps:  # each reads on, whatever another refused
            try:
                step()
            except UserError as error:
                found.append(error)
        if found:
            raise found[0]


class Lines(Subject):
    """What `predict -` is given."""

    def make(self, folder):
        (folder / "stdin").write_bytes(
            b'call my mum\n{"text": "call", "id": 7}\n{"tokens": ["a", "b"], "x": [1.5]}\n'
            + "天気 é\n\n".encode()
        )

    def damage(self, content, draw):
        return damaged_json(content, draw) if draw.random() < 0.3 else damaged(content, draw)

    def read(self, folder):
        import contextlib
        from unittest import mock

        content = (folder / "stdin").read_bytes()
        for as_json in (True, False):
            out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
            given = io.TextIOWrapper(io.BytesIO(content), encoding="ascii")
            quiet = contextlib.redirect_stderr(io.StringIO())
            with mock.patch("sys.stdin", given), contextlib.redirect_stdout(out), quiet:
                _answer_stream(Echo(), as_json=as_json)
            *lines, last = out.buffer.getvalue().decode("utf-8").split("\n")
            asked = content.split(b"\n")
            assert last == "" and len(lines) == len(asked) - (asked[-1] == b"")
            for line in lines if as_json else ():
                json.loads(line, parse_constant=lambda constant: 1 / 0)


class Echo:
    """A model that says "call" of everything."""

    tokens_of, reads_second = staticmethod(str.split), False

    def predict(self, token_lists):
        from edp_mx.data.utterance import Utterance
        from edp_mx.tasks.intent_slot.task import Understanding

        blank = [Utterance(tuple(tokens), ("O",) * len(tokens), "call") for tokens in token_lists]
        return [Understanding(one, 0.5, ()) for one in blank]


SUBJECTS = {
    kind.__name__: kind
    for kind in (
        Configurations,
        Ledgers,
        Weights,
        Checkpoints,
        Vectors,
        Models,
        JSONLines,
        Tables,
        Text,
        Parallel,
        NLUEval,
        SNIPS,
        CLINC,
        Conll,
        Rasa,
        Parquet,
        SystemTurns,
        MeaningTables,
        Triples,
        PersonaChat,
        Dialogues,
        Runs,
        Lines,
    )  # fmt: skip
}


def environment_of(folder):
    """What all subjects need: no cache, and a key of their own."""
    os.environ["EDP_MX_CACHE"] = "off"
    os.environ["EDP_MX_KEY"] = str(folder / "key")
