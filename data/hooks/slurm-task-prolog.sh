#!/bin/sh
# Slurm, for all users: TaskProlog= of slurm.conf. Sets what a hang is captured by, in every task
# that has not set it itself; what it prints as "export NAME=value" Slurm adds to the task.
prefix=${TMPDIR:-/tmp}/fr_${SLURM_JOB_ID:-0}_
offer() {
    eval "value=\${$1:-}"
    [ -n "$value" ] || echo "export $1=$2"
}
offer TORCH_NCCL_TRACE_BUFFER_SIZE 2000
offer TORCH_NCCL_DUMP_ON_TIMEOUT 1
offer TORCH_FR_DUMP_TEMP_FILE "$prefix"
offer TORCH_NCCL_DEBUG_INFO_TEMP_FILE "$prefix"
offer TORCH_NCCL_DEBUG_INFO_PIPE_FILE "$prefix"
