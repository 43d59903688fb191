#!/usr/bin/env bash
# Trains many settings and finds the best:  launch/sweep.sh SWEEP --out FOLDER …
#
#   NP=1 launch/sweep.sh configs/sweep/quickstart.yaml --out sweeps/quickstart
#   NP=2 launch/sweep.sh configs/sweep/atis_clc_dp_sgd.yaml --out sweeps/atis --budget-hours 3
#
# NP is the number of workers of each trial (default 8). Call it again to go on after an interruption.
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec python -m edp_mx sweep --workers "$np" "$@"
