#!/usr/bin/env bash
# Makes the paper's Table 1, training what has no record yet:  launch/table1.sh …
#
#   launch/table1.sh --dry-run
#   launch/table1.sh --corpora atis snips --models clc --seeds 0 1 2 --budget-hours 8 \
#     --out runs/table1.md
#   NP=2 launch/table1.sh --corpora health --models clc
#
# NP is the number of workers of each training (default 1); they share the paper's 8 micro-batches.
# Call it again to go on after an interruption.
export NP=${NP:-1}
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
exec python -m experiments.table1 --workers "$np" --configs "$root/configs" "$@"
