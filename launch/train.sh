#!/usr/bin/env bash
# Trains with Horovod workers:  launch/train.sh CONFIG … [--set key=value …] [--run DIR]
#
#   NP=2 launch/train.sh configs/atis_clc.yaml
#   NP=2 launch/train.sh configs/atis_clc.yaml configs/mechanism/edp_linear.yaml --set training.epochs=5
#   NP=16 HOSTS=host1:8,host2:8 launch/train.sh configs/atis_clc.yaml
#
# Each configuration overrides the keys of those before it.
#
# NP is the number of workers (default 8). EDP_MX_GPU=1 sets up for GPUs.
. "$(dirname "${BASH_SOURCE[0]}")/workers.sh" train "$@"
