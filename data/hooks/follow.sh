#!/bin/sh
# A job watched from beside it, by the log it writes: the sidecar of deploy/kubernetes/sidecar.yaml.
#     ./follow.sh /logs/job.log
#
# Whoever runs the job writes its exit code to LOG.exit at the end. JOB_NAME, set for the job's
# processes as well, lets their stacks be taken where it is silent for TKB_HANG_AFTER seconds.
# TKB_URL makes a server diagnose. Ends with 0: a sidecar that fails would fail the pod.
log=${1:?usage: follow.sh LOG}
trap '' TERM # the pod ends with the job: the answer is still to come
until [ -e "$log" ] || [ -e "$log.exit" ]; do sleep 1; done
# shellcheck disable=SC2016  # expanded by the inner shell
timeout-kb watch --hang-after "${TKB_HANG_AFTER:-600}" ${JOB_NAME:+--job "$JOB_NAME"} \
    ${TKB_DUMPS:+--dump "$TKB_DUMPS"} ${TKB_URL:+--post "$TKB_URL"} -- sh -c '
        tail -n +1 -F "$1" 2>/dev/null &
        reader=$!
        until [ -s "$1.exit" ]; do sleep 1; done
        sleep 2 # what was written last
        kill "$reader"
        exit "$(cat "$1.exit")"' sh "$log" >/dev/null
exit 0
