#!/usr/bin/env bash
# Trains with Horovod workers:  launch/train.sh CONFIG [--set key=value …] [--run DIR]
#
#   NP=2 launch/train.sh configs/atis_clc_sgd.yaml
#   NP=2 launch/train.sh configs/atis_clc_edp_exponential.yaml --set training.epochs=5
#   NP=16 HOSTS=host1:8,host2:8 launch/train.sh configs/atis_clc_sgd.yaml
#
# NP is the number of workers (default 8). EDP_MX_GPU=1 sets up for GPUs.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
if [ $# = 0 ] || [ "$1" = --help ]; then
  sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit $(($# == 0 ? 2 : 0))
fi
if [ ! -f "$1" ]; then
  echo "train: there is no configuration $1; choose one of configs/*.yaml" >&2
  exit 2
fi
. "$here/environment.sh"
hosts=${HOSTS:+-H $HOSTS}
exec horovodrun -np "$np" --gloo ${hosts:-} "$venv/bin/python" -m edp_mx train "$@"
