#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checkpoint.sh - going back and cleaning up as a person on call does it: list, select,
# run on, undo, prune, quarantine, in the layouts of several frameworks; and what each says.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"

layout=$flow_src/tests/flow/fake-layout
saver=$flow_src/tests/flow/fake-saver
c() { "$holdfast" checkpoint "$@"; }
save() { "$python" "$layout" save "$@"; }
resumes() { [ "$("$python" "$layout" resume "$1" "$2")" = "$3" ]; }
# says TEXT STATUS ARGUMENT...: the action ends so, and says this
says() {
	local want=$1 status=$2 got
	shift 2
	c "$@" >said.out 2>&1
	got=$?
	cat said.out
	[ "$got" = "$status" ] && grep -qF -- "$want" said.out
}
# the step of `latest'
newest() {
	c latest --json "$1" | "$python" -c 'import json, sys; print(json.load(sys.stdin)["step"])'
}
picture() {
	(cd "$1" && find . -type f ! -name '*.holdfast-manifest.json' -exec cksum {} + | sort &&
	    find . -type l | sort)
}
break_file() { truncate -s 200 "$1"; }

declare -A broken=([megatron]=iter_0000020/mp_rank_01/model_optim_rng.pt
    [deepspeed]=global_step20/zero_pp_rank_1_mp_rank_00_optim_states.pt
    [hf]=checkpoint-20/optimizer.pt [lightning]='epoch=0-step=20.ckpt')
for kind in megatron deepspeed hf lightning; do
	save "$kind" "$dir/$kind" 10 20 30 40
	break_file "$kind/${broken[$kind]}"
	picture "$kind" >before
	check "$kind: resumes at 40" resumes "$kind" "$kind" 40
	check "$kind: a broken step is refused" says "select another step" 1 select 20 "$kind"
	check "$kind: an absent one, too" says "there are 40, 30" 2 select 15 "$kind"
	check "$kind: said, not done" says "would select step 10" 0 select --dry-run 10 "$kind"
	picture "$kind" >after
	check "$kind: nothing changed" cmp before after
	check "$kind: selected" says "selected step 10" 0 select 10 "$kind"
	check "$kind: resumes at 10" resumes "$kind" "$kind" 10
	check "$kind: latest agrees" [ "$(newest "$kind")" = 10 ]
	check "$kind: its manifest is written" says "latest" 0 latest --write-manifest "$kind"
	check "$kind: and stands" says "unchanged since" 0 latest "$kind"
	check "$kind: once more" says "is the newest already" 0 select 10 "$kind"
	check "$kind: undone" says "moved back" 0 select --undo "$kind"
	picture "$kind" >after
	check "$kind: all is as before" cmp before after
	check "$kind: nothing is left beside it" [ ! -e "$kind.aside" ]
	check "$kind: no more to undo" says "nothing to undo" 2 select --undo "$kind"
	# gone on from there, then undone: refused
	c select 10 "$kind" >/dev/null
	save "$kind" "$dir/$kind" 20
	check "$kind: gone on to 20" resumes "$kind" "$kind" 20
	check "$kind: undo is refused" says "has gone on" 1 select --undo "$kind"
	check "$kind: still at 20" resumes "$kind" "$kind" 20
done

# A trainer under Holdfast goes back, and on from there.
opts=(--nproc-per-node 1 --tee none)
mkdir back
SAVER_STEPS=60 SAVER_PACE=0 run 0 back "${opts[@]}" --checkpoint-dir back -- "$saver"
check "back: selected" says "selected step 20" 0 select 20 back
SAVER_STEPS=30 SAVER_PACE=0 run 0 back "${opts[@]}" --checkpoint-dir back -- "$saver"
check "back: resumed there" grep -q 'resumes at 20' "$(rank_log back 2 0)"
check "back: the newest is that run's" [ "$(newest back)" = 30 ]

# prune: broken ones do not count, poisoned ones stop it.
save hf "$dir/prune" 10 20 30 40 50 60
break_file prune/checkpoint-50/optimizer.pt
break_file prune/checkpoint-20/optimizer.pt
check "prune: how many?" says "--keep-last K" 2 prune prune
check "prune: at least two" says "at least 2" 2 prune --keep-last 1 prune
check "prune: just written" says "may still be written" 1 prune --keep-last 2 prune
picture prune >before
check "prune: said, not done" says "would remove 2 of 6" 0 prune --keep-last 2 --quiet-for 0 -n prune
picture prune >after
check "prune: nothing changed" cmp before after
mkdir -p .trash-prune/half
check "prune: done" says "removed 2 of 6" 0 prune --keep-last 2 --quiet-for 0 prune
check "prune: 60, 50 (newer), 40, and the best, 10" \
    [ "$(cd prune && echo *)" = "checkpoint-10 checkpoint-40 checkpoint-50 checkpoint-60" ]
check "prune: the trash is empty" [ ! -e .trash-prune ]
save lightning "$dir/spike" 10 20 30 40 50 60
check "prune: before a spike, one of 40, last.ckpt" says "removed 1 of 7" 0 prune \
    --keep-last 2 --keep-every 40 --before-spike 35 --quiet-for 0 spike
check "prune: all but 20" [ "$(cd spike && echo *)" = \
    "epoch=0-step=10.ckpt epoch=0-step=30.ckpt epoch=0-step=40.ckpt epoch=0-step=50.ckpt epoch=0-step=60.ckpt last.ckpt" ]
save deepspeed "$dir/poisoned" 10 20 30 40
"$python" - <<'POISON'
import struct, zipfile
path = "poisoned/global_step40/mp_rank_00_model_states.pt"
with zipfile.ZipFile(path) as old:
    parts = {n: old.read(n) for n in old.namelist()}
parts["archive/data/0"] = struct.pack("<f", float("nan")) * 1000
with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as new:
    for name, data in parts.items():
        new.writestr(name, data)
POISON
check "poisoned: nothing is removed" says "NaN or infinity" 1 prune --keep-last 2 --quiet-for 0 poisoned
check "poisoned: all are there" [ "$(ls -d poisoned/global_step* | wc -l)" = 4 ]

# quarantine: moved with its tracker, listed, back; a place that is taken.
save deepspeed "$dir/q" 10 20 30
break_file q/global_step30/mp_rank_00_model_states.pt
check "quarantine: not what may still be written" says "may still be written" 2 \
    quarantine --quiet-for 1h q/global_step30
check "quarantine: moved" says "rewrote latest" 0 quarantine q/global_step30
check "quarantine: resumes at 20" resumes deepspeed q 20
check "quarantine: listed" says "global_step30" 0 quarantine --list q
mkdir q/global_step30
check "quarantine: its place is taken" says "exists again" 2 quarantine --undo q.quarantine/global_step30
rmdir q/global_step30
check "quarantine: back" says "moved to" 0 quarantine --undo q.quarantine/global_step30
: >full.quarantine
save hf "$dir/full" 10
check "quarantine: something is in the way" says "in the way" 2 quarantine full/checkpoint-10
check "quarantine: it is still there" [ -d full/checkpoint-10 ]

# latest says why, and what is held.
save hf "$dir/held" 10 20
check "held: said so" says "held" 1 latest --quiet-for 1h held
check "held: the next step, too" says "--quiet-for 0" 1 latest --quiet-for 1h held
check "latest: before a step" says "step 20 is not before 15" 0 latest --before-step 15 held
flow_end
