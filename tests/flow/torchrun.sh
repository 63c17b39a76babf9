#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# torchrun.sh - wrapper mode around the real torchrun: which rank failed, and the restart.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"

have_torch || exit 77
train_args=(--steps 6 --save-every 2 --exact --timeout 4)
opts=(--tee none --failure-grace 2s --backoff 10ms)

for kind in exception kill; do
	HOLDFAST_FAULT=$kind:1:5 run 0 "$kind" "${opts[@]}" --checkpoint-dir "$dir/ckpt-$kind" \
	    -- "$flow_src/examples/torchrun" --nproc_per_node 2 "$train" "${train_args[@]}"
	log=$(echo state/"$kind"/attempts/0002/*.log)
	check "$kind: two attempts" journal "$kind" "len(of('attempt')) == 2"
	check "$kind: resumed from step 4" grep -q 'resuming from step 4 ' "$log"
	check "$kind: ran to the end" grep -q 'done at step 6' "$log"
	check "$kind: rank 1 is the root" verdict "$kind" "d['root']['rank'] == 1"
	check "$kind: journal is complete" journal_complete "$kind"
	check "$kind: nothing is left" nothing_left
done
check "exception: the reason" verdict exception "d['reason'] == 'index_error'"
check "kill: the reason" verdict kill "d['reason'] == 'process_killed'"

# torchrun itself is killed: it leaves its ranks behind, Holdfast does not.
begin orphan "${opts[@]}" --checkpoint-dir "$dir/ckpt-orphan" \
    -- "$flow_src/examples/torchrun" --nproc_per_node 2 "$train" --steps 12 --exact \
    --step-time 0.2 --save-every 2
wait_for "orphan: a checkpoint" [ -e ckpt-orphan/step00000002.pt ]
for pid in $(flow_processes); do
	if command_line "$pid" |
	    grep -q '^/usr/bin/python3 [^ ]*/torchrun '; then
		kill -KILL "$pid"
	fi
done
end "$run_pid"
check "orphan: exit status 0" [ $? = 0 ]
check "orphan: two attempts" journal orphan "len(of('attempt')) == 2"
check "orphan: the old ranks were ended first" \
    journal orphan "of('gone')[0]['seq'] < of('attempt')[1]['seq']"
check "nothing is left at the end" nothing_left
flow_end
