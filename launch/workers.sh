# Sourced by the launchers, with the program's subcommand and its arguments: starts the workers.
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
python -m edp_mx "$@" --check --workers "$np" >/dev/null # an error is said once, not by every worker

# Rank 0 speaks without the prefix that horovodrun gives each line; horovodrun's own traceback goes.
exec horovodrun -np "$np" --gloo ${HOSTS:+-H "$HOSTS"} "$venv/bin/python" -m edp_mx "$@" \
  > >(sed -u 's/^\[0\]<stdout>://') \
  2> >(sed -u -e '/^Traceback (most recent call last):$/,$d' -e 's/^\[0\]<stderr>://' >&2)
