# What .ci/run and .ci/full share: stages with a time limit each, and the count of tests.

set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
# Everything that is built goes into a folder that an unprivileged user can reach, and away at the end.
work=$(mktemp -d "${TMPDIR:-/tmp}/haft-ci.XXXXXX")
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
log=$work/log
: >"$log"
failed=()

# stage NAME SECONDS COMMAND…: runs it, prints its output, its seconds, and how it ended. Where the script has a limit
# for the whole ($whole, in seconds), a stage gets no more than is left of it.
stage() {
    local name=$1 limit=$2 began=$SECONDS
    shift 2
    if [ -n "${whole:-}" ] && [ $((whole - SECONDS)) -lt "$limit" ]; then limit=$((whole > SECONDS ? whole - SECONDS : 1)); fi
    echo
    echo "=== $name (at most $limit s)"
    timeout --kill-after=10 "$limit" "$@" </dev/null 2>&1 | tee -a "$log"
    local code=${PIPESTATUS[0]}
    if [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then echo "=== $name: stopped after $limit s"; fi
    if [ "$code" -ne 0 ]; then failed+=("$name"); fi
    echo "=== $name: $((SECONDS - began)) s, exit $code"
}

# The last words: skipped tests with their reasons, then the sums that a reader looks for.
finish() {
    echo
    echo "=== skipped, each with its reason"
    # Programs under Wine may end their lines as Windows does.
    sed -i 's/\r$//' "$log"
    grep -ao 'skipped: [a-z].*' "$log" | sort | uniq -c
    local passed failures skipped
    passed=$(grep -a '^test result: ' "$log" | sed 's/.* \([0-9]*\) passed.*/\1/' | paste -sd+ | bc)
    failures=$(grep -a '^test result: ' "$log" | sed 's/.* \([0-9]*\) failed.*/\1/' | paste -sd+ | bc)
    skipped=$(grep -aoc 'skipped: [a-z].*' "$log")
    echo "=== $SECONDS s in all"
    if [ ${#failed[@]} -gt 0 ]; then echo "=== failed stages: ${failed[*]}"; fi
    echo "${passed:-0} passed, ${failures:-0} failed, $skipped skipped"
    [ ${#failed[@]} -eq 0 ] && [ "${passed:-0}" -gt 0 ]
}
