# Sourced by the other scripts: set-up, PATH, threads. Sets root, venv and np. With --help it prints
# the comment at the script's beginning instead.
set -euo pipefail
if [ "${1:-}" = --help ]; then
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "${BASH_SOURCE[1]}"
  exit 0
fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$(realpath -m "${EDP_MX_VENV:-$root/.venv}")
"$root/launch/setup.sh" $([ "${EDP_MX_GPU:-0}" = 1 ] && echo --gpu) >&2
export PATH="$venv/bin:$PATH" PYTHONUNBUFFERED=1

# MXNet finds CUDA libraries from wheels only if they are on this path before it starts.
for libraries in "$venv"/lib/python3*/site-packages/nvidia/*/lib; do
  if [ -d "$libraries" ]; then
    export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  fi
done

slots=
if [ -n "${HOSTS:-}" ]; then
  if [ "$(tr ',' '\n' <<<"$HOSTS" | grep -vc '^[^:][^:]*:[0-9][0-9]*$')" != 0 ]; then
    echo "HOSTS=$HOSTS: write it as host1:slots,host2:slots, e.g. HOSTS=host1:8,host2:8" >&2; exit 2
  fi
  slots=$(tr ',' '\n' <<<"$HOSTS" | cut -d: -f2 | sort -n)
fi
np=${NP:-$([ -z "$slots" ] && echo 8 || echo $((${slots//$'\n'/+})))}
case $np in
  '' | *[!0-9]* | 0) echo "NP=$np: the number of workers must be a whole number, 1 or more" >&2; exit 2 ;;
esac

# The workers share the cores: with more threads than cores, two workers on two cores are five times
# slower.
workers_here=$np
[ -z "$slots" ] || workers_here=${slots##*$'\n'}
threads=$(($(nproc) / workers_here))
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((threads > 1 ? threads : 1))}
