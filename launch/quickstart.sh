#!/usr/bin/env bash
# From a fresh machine to a table:  launch/quickstart.sh
#
# Sets everything up, then trains a small CLC on the built-in Communication corpus twice, without
# privacy and with eDP-SGD, on two Horovod workers. NP=8 launch/quickstart.sh takes eight.
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
echo
python -m edp_mx compare "$runs/sgd" "$runs/edp_exponential"
echo
echo "The runs are in $runs. Ask the private model something:"
echo "  $venv/bin/edp-mx predict $runs/edp_exponential \"call my parents at 0123\""
python -m edp_mx predict "$runs/edp_exponential" "call my parents at 0123"
