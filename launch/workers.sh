# Sourced by the launchers with a subcommand and its arguments; starts the workers. Without arguments,
# or with --help, it prints the comment at the launcher's beginning.
if [ $# = 1 ] || [ "$2" = --help ]; then
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "${BASH_SOURCE[1]}"
  exit $(($# == 1 ? 2 : 0))
fi
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
python -m edp_mx "$@" --check-files --workers "$np" >/dev/null # reports an error once, not from every worker
exec python -m edp_mx.cli.launch --workers "$np" ${HOSTS:+--hosts "$HOSTS"} ${NIC:+--nic "$NIC"} "$@"
