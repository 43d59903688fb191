#!/usr/bin/env bash
# From a fresh machine to a table:  launch/quickstart.sh
#
# Sets everything up, then trains on the built-in Communication corpus three times, on two Horovod
# workers: a small CLC without privacy and with the paper's eDP-SGD, and heads on a public encoder with
# DP-SGD at ε = 8. NP=8 launch/quickstart.sh takes eight workers.
set -euo pipefail
export NP=${NP:-2}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/environment.sh"
runs=$PWD/runs/quickstart-$(date +%Y%m%d-%H%M%S)
[ -f checkpoints/minilm/model.safetensors ] || python -m edp_mx checkpoint fetch minilm
echo "quickstart: training without privacy, $np workers"
"$here/train.sh" "$root/configs/quickstart.yaml" --run "$runs/sgd"
echo "quickstart: training with eDP-SGD, $np workers"
"$here/train.sh" "$root/configs/quickstart.yaml" "$root/configs/mechanism/edp_calibrated.yaml" \
  --run "$runs/edp_exponential"
echo "quickstart: training heads on a public encoder with DP-SGD at ε = 8, $np workers"
"$here/train.sh" "$root/configs/communication_bert.yaml" "$root/configs/recipe/quickstart.yaml" \
  --run "$runs/dp_sgd"
echo
python -m edp_mx compare "$runs/sgd" "$runs/edp_exponential" "$runs/dp_sgd"
echo
echo "The runs are in $runs. Ask the private model something:"
echo "  $venv/bin/edp-mx predict $runs/dp_sgd \"call my parents at 0123\""
python -m edp_mx predict "$runs/dp_sgd" "call my parents at 0123"
