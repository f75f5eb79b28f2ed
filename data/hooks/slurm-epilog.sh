#!/bin/sh
# Slurm: diagnose every batch job that failed, and leave the answer beside its log.
#
# For the administrator: set in slurm.conf  Epilog=/etc/slurm/slurm-epilog.sh  (or call it from the
# epilog there is). The address of the server and, where it wants one, the key stand in
# /etc/slurm/timeout-kb.env, readable by root alone:
#     TKB_URL=http://kb.example.org:8000
#     TKB_KEY=tkb_...                    # timeout-kb keys add slurm --role read
#     TKB_INCIDENTS=1                    # the incident board gets the log, too; role write
#
# It runs as root on every node of the job, so it
#   - acts on the first node only (the one the batch script ran on),
#   - reads the log and writes the answer as the job's owner, who may have put a link there,
#   - asks the server itself: the owner could read the key off a process of their own,
#   - gives up after a minute and always ends with 0: a failing epilog takes the node down.

# An epilog is given no search path.
PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin}
export PATH
environment=${TKB_ENV:-/etc/slurm/timeout-kb.env}
# shellcheck disable=SC1090  # the administrator's file
[ -r "$environment" ] && . "$environment"
url=${TKB_URL:-http://127.0.0.1:8000}
header=${TKB_KEY:+"header = \"Authorization: Bearer $TKB_KEY\""}
unset TKB_KEY # or the owner's processes would inherit it

[ -n "${SLURM_JOB_ID:-}" ] || exit 0
[ -n "${SLURM_JOB_USER:-}" ] || exit 0
job=$(scontrol show job "$SLURM_JOB_ID" 2>/dev/null) || exit 0

# One field of what scontrol prints, several on a line; its value holds no space.
field() {
    printf '%s\n' "$job" | tr ' ' '\n' | sed -n "s|^$1=||p" | head -n 1
}

case $(field JobState) in
    COMPLETED | CANCELLED | PENDING) exit 0 ;;
esac
# While the epilog runs the state may still be COMPLETING: then the exit code decides.
[ "$(field ExitCode)" = 0:0 ] && [ "$(field JobState)" != TIMEOUT ] && exit 0
host=$(field BatchHost)
[ "${SLURMD_NODENAME:-$host}" = "$host" ] || exit 0
# It has a line of its own: the path may hold spaces.
log=$(printf '%s\n' "$job" | sed -n 's|^ *StdOut=||p' | head -n 1)
[ -n "$log" ] || exit 0

# Runs a command as the owner of the job.
owner() {
    timeout 60 runuser -u "$SLURM_JOB_USER" -- "$@"
}

# The answer of the server to the log.
diagnosis() {
    owner cat "$log" | curl -sSf --max-time 60 -K /dev/fd/3 -H 'Accept: text/plain' -T - \
        "$url/v1/diagnose?keep=true" 3<<EOF
$header
EOF
}

leave() {
    answer=$(diagnosis) || return
    # shellcheck disable=SC2016  # expanded by the owner's shell, not here
    printf '%s\n' "$answer" | owner sh -c 'cat >"$1"' timeout-kb "$log.diagnosis.txt"
}

# The log as an incident on the board; of a long one the start, which names hosts and GPUs, and the end.
remember() {
    # shellcheck disable=SC2016  # expanded by the owner's shell, not here
    owner sh -c 'if [ "$(wc -c <"$1")" -le 32000000 ]; then cat "$1"
        else head -c 1000000 "$1"; tail -c 31000000 "$1"; fi' timeout-kb "$log" |
        curl -sSf --max-time 60 -K /dev/fd/3 -o /dev/null \
            -F "file=@-;filename=slurm-$SLURM_JOB_ID.log" "$url/v1/entries" 3<<EOF
$header
EOF
}

owner test -f "$log" || exit 0
[ -z "${TKB_INCIDENTS:-}" ] || remember 2>&1 | logger -t timeout-kb 2>/dev/null
leave 2>&1 | logger -t timeout-kb 2>/dev/null

exit 0
