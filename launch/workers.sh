# Sourced by the launchers with a subcommand and its arguments; starts the workers.
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
python -m edp_mx "$@" --check --workers "$np" >/dev/null # reports an error once, not from every worker

# Removes horovodrun's prefix from the lines of rank 0, and horovodrun's own traceback. Ctrl-C reaches
# all processes of a terminal; those that show the last lines must outlive it.
exec horovodrun -np "$np" --gloo ${HOSTS:+-H "$HOSTS"} "$venv/bin/python" -m edp_mx "$@" \
  > >(trap '' INT; exec sed -u 's/^\[0\]<stdout>://') \
  2> >(trap '' INT; exec sed -u -e '/^Traceback (most recent call last):$/,$d' -e 's/^\[0\]<stderr>://' >&2)
