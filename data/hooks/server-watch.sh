#!/bin/sh
# An inference server with a diagnosis: of its end, and as soon as its engine is dead while the
# process still answers with errors.
#     ./server-watch.sh vllm serve MODEL --tensor-parallel-size 8
#     ./server-watch.sh python -m sglang.launch_server --model-path MODEL --tp 8
#
# Needs timeout-kb; TKB_URL makes a server diagnose the end. TKB_ON_DEAD=stop ends a server whose
# engine is dead, so that whoever supervises it starts another. The exit code is the server's.
dead='EngineDeadError|EngineCore encountered|Engine core initialization failed|Scheduler hit an exception|Watchdog caught collective operation timeout'
folder=$(mktemp -d) || exec "$@"
log=$folder/server.log
: >"$log"
timeout-kb watch --log "$log" ${TKB_URL:+--post "$TKB_URL"} -- "$@" &
server=$!
# What runs in the background of a shell ignores INT.
trap 'kill -TERM "$server"' TERM INT
trap 'kill -HUP "$server"' HUP

# Looks at what was added; once is enough.
look() {
    while kill -0 "$server" 2>/dev/null; do
        if grep -qE "$dead" "$log"; then
            sleep "${SETTLE_S:-5}" >/dev/null 2>&1 # the lines that say why come with it
            kill -0 "$server" 2>/dev/null || return # watch diagnoses its end
            echo "timeout-kb: the engine is dead, the server still runs" >&2
            timeout-kb diagnose --format short "$log" >&2
            [ "${TKB_ON_DEAD:-}" != stop ] || kill -TERM "$server"
            return
        fi
        sleep "${LOOK_S:-10}" >/dev/null 2>&1 # holds no stream when all else has ended
    done
}
look &
looking=$!

# A signal ends the wait, not the server.
while :; do
    wait "$server"
    code=$?
    kill -0 "$server" 2>/dev/null || break
done
kill "$looking" 2>/dev/null
wait "$looking" 2>/dev/null
rm -rf "$folder"
exit "$code"
