# Sourced by the launchers with a subcommand and its arguments; starts the workers.
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
python -m edp_mx "$@" --check-files --workers "$np" >/dev/null # reports an error once, not from every worker
exec python -m edp_mx.cli.launch --workers "$np" ${HOSTS:+--hosts "$HOSTS"} ${NIC:+--nic "$NIC"} "$@"
