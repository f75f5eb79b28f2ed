#!/bin/sh
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --output=train-%j.log
#
# Slurm, without an administrator: a job script that ends its own log with the diagnosis.
# Submit it with the address of the server, and its key, in the environment:
#     TKB_URL=http://kb.example.org:8000 TKB_KEY=tkb_... sbatch slurm-job.sh python train.py
# Only the lines between the marks belong to the hook; the last line is your job.

# --- timeout-kb -------------------------------------------------------------------------------
diagnose() {
    code=$?
    trap - EXIT
    log=$(scontrol show job "$SLURM_JOB_ID" | sed -n 's|^ *StdOut=||p' | head -n 1)
    if [ "$code" -ne 0 ] && [ -f "$log" ]; then
        echo "timeout-kb: the job ended with exit code $code"
        # The key goes through standard input: arguments are there for all to see.
        { [ -z "${TKB_KEY:-}" ] || printf 'header = "Authorization: Bearer %s"\n' "$TKB_KEY"; } |
            curl -sSfg --max-time 60 -K - -H 'Accept: text/plain' -T "$log" \
                "${TKB_URL:-http://127.0.0.1:8000}/v1/diagnose?keep=true" ||
            echo "timeout-kb: no diagnosis; later: timeout-kb diagnose '$log'"
    fi
    exit "$code"
}
trap diagnose EXIT
trap 'exit 143' TERM # sent before the time limit and by scancel; the shell ends and diagnoses
# ----------------------------------------------------------------------------------------------

srun "$@"
