#!/bin/sh
# Slurm: diagnose every batch job that failed, and leave the answer beside its log.
#
# For the administrator: set in slurm.conf  Epilog=/etc/slurm/slurm-epilog.sh  (or call it from the
# epilog there is). The address of the server and, where it wants one, the key stand in
# /etc/slurm/timeout-kb.env, readable by root alone:
#     TKB_URL=http://kb.example.org:8000
#     TKB_KEY=tkb_...                    # timeout-kb keys add slurm --role read
#
# It runs as root on every node of the job, so it
#   - acts on the first node only (the one the batch script ran on),
#   - reads the log and writes the answer as the job's owner, who may have put a link there,
#   - gives up after a minute and always ends with 0: a failing epilog takes the node down.

# An epilog is given no search path.
PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin}
export PATH
environment=${TKB_ENV:-/etc/slurm/timeout-kb.env}
# shellcheck disable=SC1090  # the administrator's file
[ -r "$environment" ] && . "$environment"
export TKB_URL="${TKB_URL:-http://127.0.0.1:8000}" TKB_KEY="${TKB_KEY:-}"

[ -n "${SLURM_JOB_ID:-}" ] || exit 0
[ -n "${SLURM_JOB_USER:-}" ] || exit 0
job=$(scontrol show job -o "$SLURM_JOB_ID" 2>/dev/null) || exit 0

# One field of the one line scontrol prints.
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
log=$(field StdOut)
[ -n "$log" ] || exit 0

# shellcheck disable=SC2016  # expanded by the owner's shell, not here
timeout 60 runuser -u "$SLURM_JOB_USER" -- sh -c '
    answer=$1.diagnosis.txt
    [ -f "$1" ] || exit 0
    { [ -z "$TKB_KEY" ] || printf "header = \"Authorization: Bearer %s\"\n" "$TKB_KEY"; } |
        curl -sSf -K - -H "Accept: text/plain" -T "$1" -o "$answer" "$TKB_URL/v1/diagnose?keep=true"
' timeout-kb "$log" 2>&1 | logger -t timeout-kb 2>/dev/null

exit 0
