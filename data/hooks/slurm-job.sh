#!/bin/sh
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=train-%j.log
#
# Slurm, without an administrator: a job script that captures the job when it hangs, ends its own
# log with the diagnosis, and starts again where that may help.
#     TKB_URL=http://kb.example.org:8000 TKB_KEY=tkb_... sbatch slurm-job.sh python train.py
# TKB_REQUEUE=3 starts a failed job again up to three times, unless its attempts say that it is of
# no use: the third end of one kind without a step gained. Without timeout-kb on the node the
# server is asked with curl, and nothing is captured. The last line is your job.

# --- timeout-kb -------------------------------------------------------------------------------
# Dumps of the flight recorder show which rank is behind; with a pipe they can be asked for.
export TORCH_NCCL_TRACE_BUFFER_SIZE="${TORCH_NCCL_TRACE_BUFFER_SIZE:-2000}"
export TORCH_NCCL_DUMP_ON_TIMEOUT="${TORCH_NCCL_DUMP_ON_TIMEOUT:-1}"
export TORCH_FR_DUMP_TEMP_FILE="${TORCH_FR_DUMP_TEMP_FILE:-${TMPDIR:-/tmp}/fr_${SLURM_JOB_ID:-0}_}"
export TORCH_NCCL_DEBUG_INFO_TEMP_FILE="$TORCH_FR_DUMP_TEMP_FILE"
export TORCH_NCCL_DEBUG_INFO_PIPE_FILE="${TORCH_NCCL_DEBUG_INFO_PIPE_FILE:-$TORCH_FR_DUMP_TEMP_FILE}"

ended() {
    code=$?
    trap - EXIT
    [ "$code" -eq 0 ] || explain
    [ "$code" -eq 0 ] || again
    exit "$code"
}

# watch has said it all; where it is missing the server is asked.
explain() {
    echo "timeout-kb: the job ended with exit code $code"
    log=$(scontrol show job "$SLURM_JOB_ID" | sed -n 's|^ *StdOut=||p' | head -n 1)
    if command -v timeout-kb >/dev/null 2>&1 || [ ! -f "$log" ]; then return; fi
    # The key goes through standard input: arguments are there for all to see.
    { [ -z "${TKB_KEY:-}" ] || printf 'header = "Authorization: Bearer %s"\n' "$TKB_KEY"; } |
        curl -sSfg --max-time 60 -K - -H 'Accept: text/plain' -T "$log" \
            "${TKB_URL:-http://127.0.0.1:8000}/v1/diagnose?keep=true" ||
        echo "timeout-kb: no diagnosis; later: timeout-kb diagnose '$log'"
}

# Put the job back into the queue; exit code 4 says that its attempts all end alike.
again() {
    [ "${SLURM_RESTART_COUNT:-0}" -lt "${TKB_REQUEUE:-0}" ] || return
    [ "$code" -ne 143 ] || return # its time was over, or somebody ended it
    if command -v timeout-kb >/dev/null 2>&1; then
        timeout-kb diagnose --job "$SLURM_JOB_ID" --retry-verdict
        [ $? -ne 4 ] || return
    fi
    echo "timeout-kb: job $SLURM_JOB_ID goes back into the queue"
    scontrol requeue "$SLURM_JOB_ID"
}

run() {
    command -v timeout-kb >/dev/null 2>&1 || { "$@"; return; }
    timeout-kb watch --job "$SLURM_JOB_ID" --hang-after "${TKB_HANG_AFTER:-300}" \
        ${TKB_URL:+--post "$TKB_URL"} -- "$@"
}
trap ended EXIT
trap 'exit 143' TERM # sent before the time limit and by scancel; the shell ends and diagnoses
# ----------------------------------------------------------------------------------------------

run srun "$@"
