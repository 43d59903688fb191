"""What the run directory of a pre-training holds."""

from __future__ import annotations

from dataclasses import dataclass

from edp_mx.dp.state import RunState

MODEL = "model"
README = """# {name}

One pre-training run of edp_mx: a BERT that learned to guess masked pieces of public text. Read
`results.json` for how well it guesses. The text is not protected: it must be public.

| file | what it holds |
| --- | --- |
| `model/` | the BERT in Hugging Face's layout; `model.checkpoint: {path}/model` starts from it; \
`origin.json` has keyed hashes of the text |
| `results.json` | perplexities; written last: without it the run did not end well |
| `config.yaml` | every setting, written out; `launch/pretrain.sh config.yaml` does it again |
| `environment.json` | command, workers, versions of the packages, machine |
| `vocab.txt`, `tokenizer_config.json` | the word pieces, and how text is cut into them |
| `metrics.jsonl` | loss, learning rate and speed by step; perplexity of the held-out text |
| `events/` | the same as TensorBoard curves: `tensorboard --logdir events` |
| `curves.png`, `curves.csv` | the same to look at |
| `checkpoint.npz`, `checkpoint-1.npz` | until the end: where it stands, and where it stood \
before; `{resume}` goes on |
| `rank_<i>.log` | each worker's log |

`unigram_perplexity` is that of the same masked pieces for somebody who knows only how often each
piece occurs in the text.
"""


@dataclass(frozen=True, eq=False)
class PretrainingState(RunState):
    """A pre-training run after `step` steps, from which it goes on at exactly that step."""

    KIND = "a pre-training"

    step: int
    fingerprint: str
    num_workers: int
