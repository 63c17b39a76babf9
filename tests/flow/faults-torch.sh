#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# faults-torch.sh - a real trainer, native ranks, each kind of injected fault: the right
# reason, the right decision, resumed from the right step, nothing left running.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"

have_torch || exit 77
args=(--steps 6 --save-every 2 --exact)
opts=(--nproc-per-node 2 --tee none --failure-grace 1s --backoff 10ms)

# resumed NAME STEP: attempt 2 began after that step, as chosen and as printed
resumed() {
	journal "$1" "of('attempt')[1]['resume']['step'] == $2" &&
	grep -q "^resuming from step $2 " "$(rank_log "$1" 2 0)" &&
	[ "$(sed -n 's/^step \([0-9]*\) .*/\1/p' "$(rank_log "$1" 2 0)" | head -n 1)" \
	    = $(($2 + 1)) ]
}

# fault KIND REASONS RESUME-STEP [EXPRESSION over the verdict]: before step 5 of 6 in rank
# 1; REASONS is a list such as hang|nccl_timeout.  A rank that hangs is noticed by the
# time-out of its peer, $silence.
silence=30
# FAULTS, a list of kinds, leaves the others out.
wants() {
	[[ -z "${FAULTS-}" || " $FAULTS " == *" $1 "* ]]
}
fault() {
	local kind=$1 reasons=$2 step=$3 expression=${4-}
	wants "$kind" || return 0
	HOLDFAST_FAULT=$kind:1:5 run 0 "$kind" "${opts[@]}" --checkpoint-dir "$dir/ckpt-$kind" \
	    -- "$train" "${args[@]}" --timeout "$silence" || return
	check "$kind: reason $reasons" verdict "$kind" "d['reason'] in '$reasons'.split('|')"
	[ -z "$expression" ] ||
		check "$kind: verdict has $expression" verdict "$kind" "$expression"
	check "$kind: one restart" journal "$kind" \
	    "len(of('attempt')) == 2 and of('decision')[0]['kind'] == 'restart'"
	check "$kind: resumed from step $step" resumed "$kind" "$step"
	# Data that is skipped makes other weights.
	[ "$kind" = nan ] ||
		check "$kind: the weights are those of all runs" same_weights "$kind"
	check "$kind: journal is complete" journal_complete "$kind"
	check "$kind: nothing is left" nothing_left
}

weights() {
	sed -n 's/.*weights sha256 //p' "$(rank_log "$1" "$2" 0)"
}
same_weights() {
	[ -n "$calm" ] && [ "$(weights "$1" 2)" = "$calm" ]
}

run 0 calm "${opts[@]}" --checkpoint-dir "$dir/ckpt-calm" -- "$train" "${args[@]}"
calm=$(weights calm 1)
check "calm: one attempt, weights" [ -n "$calm" ]

at='d["root"]["rank"] == 1'
fault exception index_error 4 "$at"
fault exit unknown 4 "$at"
fault kill process_killed 4 "$at"
fault segv native_crash 4 "$at"
fault abort native_crash 4 "$at"
fault oom gpu_oom 4 "$at"
fault daemon runtime_error 4 "$at"
fault nan loss_nan 4
! wants nan || check "nan: the data around it was skipped" \
    grep -q '^skipping data 5 to' "$(rank_log nan 2 0)"
fault torn process_killed 2
! wants torn || check "torn: the torn checkpoint was seen" \
    grep -q 'step00000004.*\(incomplete\|corrupt\)' state/torn/journal.jsonl
fault flip process_killed 2
! wants flip || check "flip: the flipped checkpoint was seen" \
    grep -q 'step00000004.*corrupt' state/flip/journal.jsonl
silence=4
fault stop 'hang|network_error|nccl_timeout' 4
fault hang 'hang|network_error|nccl_timeout' 4
fault ignore-term 'hang|network_error|nccl_timeout' 4
flow_end
