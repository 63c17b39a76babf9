#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh - the main job, in about a minute: four ranks train; one is killed after a bit of
# the newest checkpoint has turned over; Holdfast recovers; the result is proven equal,
# bit for bit, to that of a run that nothing happened to.  `./bootstrap demo' runs it.
#
# Reads HOLDFAST (the command; default ./holdfast of the source tree) and PYTHON.  Ends
# with one line per claim, and exits 1 when one of them does not hold.
set -u
here=$(cd "$(dirname "$0")" && pwd)
holdfast=${HOLDFAST:-$here/../holdfast}
unset HOLDFAST
steps=20 every=5 fault_step=13 flipped_step=10 good_step=5
failed=0

python=${PYTHON-}
for candidate in python3 /usr/bin/python3; do
	[ -n "$python" ] || ! "$candidate" -c 'import torch' 2>/dev/null || python=$candidate
done
[ -n "$python" ] || { echo "demo: no python3 with torch found (PYTHON=...)" >&2; exit 2; }
[ -x "$holdfast" ] || { echo "demo: $holdfast: not built (./bootstrap)" >&2; exit 2; }

dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-demo-XXXXXX") || exit 2
trap 'rm -rf "$dir"' EXIT
trap 'exit 2' INT TERM
cd "$dir" || exit 2
export HOLDFAST_STATE_DIR=$dir/state OMP_NUM_THREADS=1

train=("$here/train.py" --exact --steps "$steps" --save-every "$every")
torchrun=("$python" "$here/torchrun" --nproc_per_node 4)

title() {
	printf '\n=== %s\n' "$*"
}

# pass TEXT COMMAND...: one claim
results=
pass() {
	local text=$1 mark=pass
	shift
	"$@" >/dev/null 2>&1 || { mark=FAIL; failed=1; }
	results+=$(printf '%s  %s' "$mark" "$text")$'\n'
}

weights() {
	sed -n 's/.*weights sha256 \([0-9a-f]\{64\}\).*/\1/p' "$@" | tail -n 1
}

# first_step FILE...: the first step that a log reports
first_step() {
	sed -n 's/^\(\[[^]]*\]: *\)\{0,1\}step \([0-9]*\) loss.*/\2/p' "$@" | head -n 1
}

title "1. undisturbed: torchrun alone, no fault"
"${torchrun[@]}" "${train[@]}" --checkpoint-dir calm >calm.out 2>&1
tail -n 1 calm.out
calm=$(weights calm.out)

# Without the tracebacks of the ranks that lost their peer; they are in the logs.
interesting() {
	grep --line-buffered -E \
	    '^([0-9:]{8} |[+|]|(\[[a-z]*0\]: ?)?(step|starting|resuming|done) )'
}

# disturbed NAME COMMAND...: the same job under Holdfast, with the fault
disturbed() {
	local name=$1 rc
	shift
	HOLDFAST_FAULT=flip:2:$fault_step "$holdfast" run --name "$name" \
	    --checkpoint-dir "$dir/$name" "$@" 2>&1 | tee "$name.out" | interesting
	rc=${PIPESTATUS[0]}
	local logs=(state/"$name"/attempts/0002/*.log)
	pass "$name: the run ended well" [ "$rc" = 0 ]
	pass "$name: the flipped checkpoint was skipped" \
	    grep -q "step0*$flipped_step\.pt.*corrupt" "state/$name/journal.jsonl"
	pass "$name: attempt 2 began with step $((good_step + 1)), after the newest valid one" \
	    [ "$(first_step "${logs[@]}")" = $((good_step + 1)) ]
	pass "$name: final weights equal the undisturbed run's" \
	    [ -n "$calm" -a "$(weights "${logs[@]}")" = "$calm" ]
}

title "2. native: holdfast run --nproc-per-node 4 -- train.py"
disturbed native --nproc-per-node 4 -- "$python" "${train[@]}"

title "3. wrapped: holdfast run -- torchrun --nproc_per_node 4 train.py"
disturbed wrapped -- "${torchrun[@]}" "${train[@]}"

title "4. control: what the flipped checkpoint would have done"
flipped=$(find ./native?* ./wrapped?* -name "step*$flipped_step.pt" 2>/dev/null | head -n 1)
echo "torchrun train.py --resume $flipped"
"${torchrun[@]}" "${train[@]}" --checkpoint-dir control --resume "${flipped:-none}" \
    >control.out 2>&1
sed -n -e '/^resuming/p' -e '$p' control.out
control=$(weights control.out)
pass "control: torch loads the flipped file without complaint" \
    grep -q "^resuming from step $flipped_step of .*$flipped" control.out
pass "control: and ends with other weights" [ -n "$control" -a "$control" != "$calm" ]

title "results"
printf '%s' "$results"
exit "$failed"
