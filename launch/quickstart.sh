#!/usr/bin/env bash
# From a fresh machine to a table:  launch/quickstart.sh
#
# Sets everything up, then trains a small CLC on the built-in Communication corpus three times, on two
# Horovod workers: without privacy, with the paper's eDP-SGD, and with DP-SGD at ε = 8 from a public
# warm start. NP=8 launch/quickstart.sh takes eight workers.
set -euo pipefail
export NP=${NP:-2}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/environment.sh"
runs=$PWD/runs/quickstart-$(date +%Y%m%d-%H%M%S)
echo "quickstart: training without privacy, $np workers"
"$here/train.sh" "$root/configs/quickstart.yaml" --run "$runs/sgd"
echo "quickstart: training with eDP-SGD, $np workers"
"$here/train.sh" "$root/configs/quickstart.yaml" "$root/configs/mechanism/edp_calibrated.yaml" \
  --run "$runs/edp_exponential"
echo "quickstart: a warm start on the labels of two public corpora, $np workers"
python -m edp_mx data merge health:6000 video:6000 --out "$runs/public.jsonl.gz"
"$here/train.sh" "$root/configs/quickstart.yaml" "$root/configs/warm_start/quickstart.yaml" \
  --set data.path="$runs/public.jsonl.gz" --run "$runs/public_start"
echo "quickstart: training with DP-SGD at ε = 8 from there, $np workers"
"$here/train.sh" "$root/configs/quickstart.yaml" "$root/configs/recipe/quickstart.yaml" \
  --set model.start_from="$runs/public_start" --run "$runs/dp_sgd"
echo
python -m edp_mx compare "$runs/sgd" "$runs/edp_exponential" "$runs/dp_sgd"
echo
echo "The runs are in $runs. Ask the private model something:"
echo "  $venv/bin/edp-mx predict $runs/dp_sgd \"call my parents at 0123\""
python -m edp_mx predict "$runs/dp_sgd" "call my parents at 0123"
