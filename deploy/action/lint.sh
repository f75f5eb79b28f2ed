#!/usr/bin/env bash
# What the action runs: `timeout-kb lint` over the tracked files that LINT_FILES names.
set -euo pipefail

patterns=()
while IFS= read -r line; do
    [ -z "${line//[[:space:]]/}" ] || patterns+=("$line")
done <<<"${LINT_FILES:-}"
[ "${#patterns[@]}" -gt 0 ] || { echo "the input files names nothing" >&2; exit 2; }

files=()
while IFS= read -r -d '' file; do files+=("./$file"); done < <(git ls-files -z -- "${patterns[@]}")
if [ "${#files[@]}" -eq 0 ]; then
    echo "no tracked file matches"
    exit 0
fi

options=(--lang "${LINT_LANG:-en}")
[ -z "${LINT_TORCH:-}" ] || options+=(--torch "$LINT_TORCH")
if [ -n "${LINT_SARIF:-}" ]; then
    timeout-kb lint "${options[@]}" --format sarif --fail-on never -- "${files[@]}" >"$LINT_SARIF"
fi
exec timeout-kb lint "${options[@]}" --format github --fail-on "${LINT_FAIL_ON:-warning}" -- "${files[@]}"
