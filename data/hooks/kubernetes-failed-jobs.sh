#!/bin/sh
# Kubernetes: diagnose failed Jobs from the logs of their pods, without a sidecar.
#     ./kubernetes-failed-jobs.sh              every failed Job of the namespace, each once
#     ./kubernetes-failed-jobs.sh train-llama  this Job
#
# Needs kubectl and curl. NAMESPACE is the namespace (default: that of the context), TKB_URL the
# server, TKB_KEY its key where it wants one. The answer is printed, and the Job gets the
# annotation timeout-kb/diagnosis with the link to it: that is how a Job is known to be done.
# In a cluster, and for the jobs of operators, see deploy/kubernetes/failed-jobs.yaml.

TKB_URL=${TKB_URL:-http://127.0.0.1:8000}
MAX_PODS=${MAX_PODS:-64} # of a Job whose logs are read: a cause shows in some of them
MAX_LINES=${MAX_LINES:-20000} # of the end of each log
MAX_BYTES=${MAX_BYTES:-900000} # of these; all pods together stay below the server's 64 MiB
failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

kube() {
    kubectl ${NAMESPACE:+--namespace "$NAMESPACE"} "$@"
}

# The failed Jobs that carry no annotation yet, one a line.
failed_jobs() {
    kube get jobs -o 'jsonpath={range .items[*]}{.metadata.name}{"|"}{.status.conditions[?(@.type=="Failed")].status}{"|"}{.metadata.annotations.timeout-kb/diagnosis}{"\n"}{end}' |
        awk -F '|' '$2 == "True" && $3 == "" { print $1 }'
}

diagnose() {
    job=$1
    rm -rf "${folder:?}/logs" && mkdir "$folder/logs"
    kube get pods -l "job-name=$job" -o name >"$folder/pods" || return 1
    set --
    while read -r pod && [ $# -lt $((2 * MAX_PODS)) ]; do
        log=$folder/logs/${pod#pod/}.log
        # The container before a restart is the one that failed; a pod never restarted has none.
        kube logs "$pod" --previous --tail "$MAX_LINES" >"$folder/log" 2>/dev/null ||
            kube logs "$pod" --tail "$MAX_LINES" >"$folder/log" 2>/dev/null
        tail -c "$MAX_BYTES" "$folder/log" >"$log"
        [ -s "$log" ] && set -- "$@" -F "file=@$log"
    done <"$folder/pods"
    if [ $# -eq 0 ]; then
        echo "timeout-kb: Job $job has no logs any more" >&2
        return 1
    fi
    echo "--- Job $job"
    # The key goes through standard input: arguments are there for all to see.
    { [ -z "${TKB_KEY:-}" ] || printf 'header = "Authorization: Bearer %s"\n' "$TKB_KEY"; } |
        curl -sSf --max-time 60 -K - -H 'Accept: text/plain' -D "$folder/headers" "$@" \
            "$TKB_URL/v1/diagnose?keep=true" || return 1
    place=$(tr -d '\r' <"$folder/headers" | sed -n 's/^[Ll]ocation: //p')
    page=$(tr -d '\r' <"$folder/headers" | sed -n 's/^[Ll]ink: <\([^>]*\)>.*/\1/p')
    kube annotate job "$job" --overwrite \
        "timeout-kb/diagnosis=${page:-$TKB_URL$place}" >/dev/null
}

if [ $# -gt 0 ]; then
    printf '%s\n' "$@" >"$folder/jobs"
else
    failed_jobs >"$folder/jobs" || exit 1
fi
while read -r name; do
    diagnose "$name" </dev/null || failed=1
done <"$folder/jobs"
exit "$failed"
