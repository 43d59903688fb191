"""The README.md of a run directory: a line on each of its files."""

README = """# {name}

One training run of edp_mx. Read `results.json` for how good the model is and `privacy.json` for
what it leaks; `edp-mx compare` sets runs side by side. "NOT private" means that ε does not cover a
file: it holds private text or reveals training data. Only you can read this folder.

| file | what it holds |
| --- | --- |
| `config.yaml` | every setting, written out; train again with `launch/train.sh config.yaml` |
| `environment.json` | command, workers, versions of the packages, machine, kernels of the \
products, keyed hashes of the parts |
| `origin.json` | what was read for the model, and for those that it starts from, as keyed hashes |
| `split.json` | ids of the utterances in the three parts. NOT private |
| `vocabulary.json` | words, characters, slots, intents, and whether they are public |
| `layers.json` | the layers k of Algorithm 1: their parameters and scales α_k |
| `metrics.jsonl` | one line per epoch: loss, validation scores, ε so far, clipping. NOT private |
| `events/`, `mlruns/` or `wandb/` | the same for the tracker in `training.tracking`: \
`tensorboard --logdir events`, `mlflow ui --backend-store-uri mlruns`, \
`wandb sync wandb/offline-run-*`. NOT private |
| `curves.png`, `curves.csv` | the same to look at |
| `report.html` | one page: scores, ε and what it does not cover, curves, settings, commands. NOT \
private |
| `weights.npz` | the parameters, by name |
| `privacy_ledger.jsonl` | the plan and every release, each line written before its \
release; `edp-mx explain` reads it |
| `checkpoint.npz`, `checkpoint-1.npz` | while the run lasts: where it stands, and where it stood \
before; `{resume}` resumes it. NOT private (it contains the best epoch by private scores) |
| `privacy.json` | the guarantee: ε as published, ε that holds, and what neither covers |
| `statement.html`, `statement.md` | once `edp-mx statement` was asked for it: the guarantee on a \
page to sign. What attacks and repeats say there is NOT private |
| `record.json` | what `edp-mx runs keep` copies: settings, scores, both ε, epochs, time; no text \
and no paths. Scores, epochs and times are NOT private |
| `results.json` | scores on the test part, and as `baseline` those of the best constant answer; \
written last: without it the run did not finish. Its times are NOT private under Poisson sampling: \
they reveal how much was drawn |
| `model/` | after `task: masked_lm`: the BERT in Hugging Face's layout, for `model.checkpoint` |
| `generated.jsonl`, `generated.json` | once `edp-mx evaluate --generate` was asked for it: what \
the model wrote for prompts, beside their references, and its scores on the test part. NOT private |
| `rank_<i>.log` | each worker's log: losses, scores, times. NOT private |
| `scores.npz` | once attacked: the model's outputs for members and others. NOT private |
| `attack-<name>/` | each attack's `report.html`, numbers and pictures. NOT private |

`edp-mx evaluate {path}` scores it again, `edp-mx predict {path} "an utterance"` uses it.
"""
