#!/usr/bin/env bash
# Pre-trains a model on plain text, which is launch/train.sh with a configuration whose task is
# masked_lm (a BERT) or causal_lm (a GPT-2):  launch/pretrain.sh CONFIG … [--set key=value …]
#
#   edp-mx data text snips nlu_eval communication health video --size 4000 --out text/public.txt.gz
#   NP=2 launch/pretrain.sh configs/pretrain/pretraining.yaml --set data.path=text/public.txt.gz
#   NP=2 launch/pretrain.sh --resume runs/pretraining-20260101-120000
#   NP=16 HOSTS=host1:8,host2:8 launch/pretrain.sh configs/pretrain/public_text.yaml
#
# NP is the number of workers (default 8). EDP_MX_GPU=1 sets up for GPUs.
. "$(dirname "${BASH_SOURCE[0]}")/workers.sh" train "$@"
