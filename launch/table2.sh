#!/usr/bin/env bash
# Makes the paper's Table 2, the time of an epoch and the factors of privacy:  launch/table2.sh …
#
#   launch/table2.sh --corpora atis --models clc bert --workers 1 2 8 --out results/table2.md
#   launch/table2.sh --corpora health communication video dstc8 --workers 1 \
#     --budget-seconds 1800 --out results/table2.md
#
# It starts the workers itself. Call it again to go on after an interruption.
export NP=1 # all cores, which the workers of a row share
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
exec python -m experiments.table2 --configs "$root/configs" "$@"
