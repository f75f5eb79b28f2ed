#!/bin/sh
# torchrun with a diagnosis at its end: use it in place of torchrun.
#     ./torchrun-watch.sh --nproc-per-node 8 train.py
#
# Where timeout-kb is installed it watches the job itself (also for silence, after TKB_HANG_AFTER
# seconds); TKB_URL makes a server diagnose instead. With TKB_LOG_DIR every rank's output goes to a
# file of its own there, too, and the ranks' files and torchrun's error files are diagnosed. Without
# timeout-kb the output goes through tee, and the server TKB_URL names is asked with curl. The exit
# code is torchrun's.

# Dumps of the flight recorder show which rank is behind; both names, for the old and the new torch.
prefix=${TORCH_FR_DUMP_TEMP_FILE:-${TMPDIR:-/tmp}/timeout-kb-$(id -u)-rank_}
export TORCH_FR_DUMP_TEMP_FILE="$prefix"
export TORCH_NCCL_DEBUG_INFO_TEMP_FILE="${TORCH_NCCL_DEBUG_INFO_TEMP_FILE:-$prefix}"
export TORCH_NCCL_DUMP_ON_TIMEOUT="${TORCH_NCCL_DUMP_ON_TIMEOUT:-1}"
# With a pipe and a buffer they can be asked for before the timeout, which timeout-kb does.
export TORCH_NCCL_DEBUG_INFO_PIPE_FILE="${TORCH_NCCL_DEBUG_INFO_PIPE_FILE:-$prefix}"
export TORCH_NCCL_TRACE_BUFFER_SIZE="${TORCH_NCCL_TRACE_BUFFER_SIZE:-2000}"

if [ -n "${TKB_LOG_DIR:-}" ]; then
    mkdir -p "$TKB_LOG_DIR"
    set -- --log-dir "$TKB_LOG_DIR" --redirects 3 --tee 3 "$@"
fi
if [ -n "${TKB_LOG_DIR:-}" ] && command -v timeout-kb >/dev/null 2>&1; then
    started=$TKB_LOG_DIR/.started
    : >"$started"
    timeout-kb watch ${TKB_URL:+--post "$TKB_URL"} \
        ${TKB_HANG_AFTER:+--hang-after "$TKB_HANG_AFTER"} -- torchrun "$@" &
    job=$!
    trap 'kill -TERM "$job"' TERM INT # what runs in the background of a shell ignores INT
    trap 'kill -HUP "$job"' HUP
    while :; do # a signal ends the wait, not the job
        wait "$job"
        code=$?
        kill -0 "$job" 2>/dev/null || break
    done
    if [ "$code" -ne 0 ]; then
        folder=$(mktemp -d) || exit "$code"
        # Those of this run alone: torchrun makes a folder for each run and attempt.
        (cd "$TKB_LOG_DIR" && find . -type f -newer "$started" ! -name .started -exec tar -cf "$folder/ranks.tar" {} +)
        echo "timeout-kb: from the files of the ranks in $TKB_LOG_DIR" >&2
        timeout-kb diagnose --format short "$folder/ranks.tar" >&2
        rm -rf "$folder"
    fi
    exit "$code"
fi
if command -v timeout-kb >/dev/null 2>&1; then
    exec timeout-kb watch ${TKB_URL:+--post "$TKB_URL"} \
        ${TKB_HANG_AFTER:+--hang-after "$TKB_HANG_AFTER"} -- torchrun "$@"
fi

folder=$(mktemp -d) || exec torchrun "$@"
trap 'rm -rf "$folder"' EXIT
# A pipe has the exit code of tee; torchrun's own goes through a file.
{ torchrun "$@" 2>&1 || echo $? >"$folder/code"; } | tee "$folder/job.log"
[ -f "$folder/code" ] || exit 0
code=$(cat "$folder/code")
{ [ -z "${TKB_KEY:-}" ] || printf 'header = "Authorization: Bearer %s"\n' "$TKB_KEY"; } |
    curl -sSf --max-time 60 -K - -H 'Accept: text/plain' -T "$folder/job.log" \
        "${TKB_URL:-http://127.0.0.1:8000}/v1/diagnose?keep=true" >&2
exit "$code"
