#!/bin/sh
# Ray: waits for a job by its submission id, and diagnoses its log when it fails.
#     ray job submit --no-wait --submission-id train-1 -- python train.py
#     ./ray-job.sh train-1
#
# Needs curl and python3. RAY_API_SERVER_ADDRESS is the head's dashboard (default
# http://127.0.0.1:8265). Diagnosed by timeout-kb where it is installed, else by the server TKB_URL
# names. Exit code: 0 the job succeeded, 1 it failed, 2 Ray does not know it.
ray=${RAY_API_SERVER_ADDRESS:-http://127.0.0.1:8265}
job=${1:?usage: ray-job.sh SUBMISSION_ID}
pause_s=${POLL_S:-10}
case $job in
*[!A-Za-z0-9_.-]*) echo "no submission id of Ray: $job" >&2 && exit 2 ;;
esac
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# A field of a JSON answer.
field() {
    python3 -c 'import json, sys; sys.stdout.write(str(json.load(sys.stdin).get(sys.argv[1], "")))' "$1"
}

misses=0
while :; do
    # The head may restart while a job runs: a few misses are borne.
    if curl -sSf --max-time 30 "$ray/api/jobs/$job" >"$folder/job.json"; then
        misses=0
        status=$(field status <"$folder/job.json")
    else
        misses=$((misses + 1))
        status=
        [ "$misses" -lt 6 ] || { echo "timeout-kb: Ray at $ray does not tell of job $job" >&2 && exit 2; }
    fi
    case $status in
    SUCCEEDED) exit 0 ;;
    FAILED | STOPPED) break ;;
    esac
    sleep "$pause_s"
done
[ "$status" = FAILED ] || exit 1
curl -sSf --max-time 120 "$ray/api/jobs/$job/logs" >"$folder/logs.json" || exit 1
field logs <"$folder/logs.json" >"$folder/$job.log"
# What ended the driver stands in the message where its log breaks off.
{ echo && field message <"$folder/job.json"; } >>"$folder/$job.log"
if command -v timeout-kb >/dev/null 2>&1; then
    timeout-kb diagnose "$folder/$job.log"
else
    # The key goes through standard input: arguments are there for all to see.
    { [ -z "${TKB_KEY:-}" ] || printf 'header = "Authorization: Bearer %s"\n' "$TKB_KEY"; } |
        curl -sSf --max-time 60 -K - -H 'Accept: text/plain' -T "$folder/$job.log" \
            "${TKB_URL:-http://127.0.0.1:8000}/v1/diagnose?keep=true"
fi
exit 1
