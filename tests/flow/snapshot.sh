#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# snapshot.sh - ranks hand their state over through the library and train on: what is
# written, what a restart goes on from, a store without room, and kill -9 of ranks,
# writing process, agent and supervisor at random moments (SNAPSHOT_KILLS, 8; SNAPSHOT_SEED).
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/flow/saves.sh
. "$flow_src/tests/flow/saves.sh"

snapper=$flow_src/tests/flow/fake-snapper
export HOLDFAST_CHECKPOINT_LIBRARY=$flow_build/.libs/libholdfast-checkpoint.so.0
[ -e "$HOLDFAST_CHECKPOINT_LIBRARY" ] || { echo "no shared library"; exit 99; }
opts=(--tee none --backoff 10ms --failure-grace 500ms)
kills=${SNAPSHOT_KILLS:-8}
# shellcheck disable=SC2034 # for pids_of
trainer="fake-snapper"


# A rank dies right after a snapshot that takes 2 s to write: the restart waits for it.
SNAP_DIE=12 SNAP_EVERY=10 SNAP_STEPS=30 run 0 slow --nproc-per-node 2 "${opts[@]}" \
    --checkpoint-dir slow --stage "64M:$dir/fast" --stage-bandwidth 512K -- "$snapper"
check "slow: resumed from the snapshot" grep -q 'resumes at 10' "$(rank_log slow 2 0)"
check "slow: all is whole" all_valid slow valid
check "slow: the last one too" [ "$(newest slow)" = 30 ]
check "slow: both ranks' files" [ "$(cd slow/step00000030 && echo rank*)" = \
    "rank-00000-of-00002.pt rank-00001-of-00002.pt" ]
check "slow: the rank was told" grep -q 'the last one: 0' "$(rank_log slow 2 1)"
check "slow: as the journal says" as_told slow slow
check "slow: nothing is left" nothing_left

# The rank ends without waiting; what it committed is written before the run ends.
SNAP_EVERY=7 SNAP_STEPS=7 run 0 leave --nproc-per-node 1 "${opts[@]}" \
    --checkpoint-dir leave --stage "64M:$dir/fast" -- \
    bash -c "$snapper & p=\$!; sleep 1; kill -KILL \$p 2>/dev/null; exit 0"
check "leave: written" [ "$(newest leave)" = 7 ]

# A store without room: said to the rank and in the journal, and the run goes on.
if mkdir small && mount -t tmpfs -o size=1500k none small 2>/dev/null; then
	SNAP_STEPS=20 run 0 small --nproc-per-node 1 "${opts[@]}" \
	    --checkpoint-dir "$dir/small" --stage "64M:$dir/fast" -- "$snapper"
	check "small: the journal names the loss" journal small \
	    "any('No space' in (r['stage']['why'] or '') for r in of('stage')
	    if r['stage']['event'] == 'lost')"
	check "small: the rank heard it" grep -q 'the last one: -6 .*No space' \
	    "$(rank_log small 1 0)"
	check "small: said so" grep -q 'could not be written: .*No space' small.out
	check "small: what is there is whole" all_valid small valid
	umount small
fi

# Stand-alone, as beside any launcher.
mkdir alone-fast
"$holdfast" checkpoint stage --socket "$dir/alone.sock" alone-fast alone >alone.out 2>&1 &
alone=$!
wait_for "alone: listens" test -S alone.sock
HOLDFAST_STAGE_SOCKET=$dir/alone.sock HOLDFAST_RUN_DIR=$dir SNAP_STEPS=10 "$snapper" >rank.out
check "alone: durable" grep -q '^durable  step 10 .*step00000010.pt' alone.out
kill -TERM "$alone"
end "$alone"
check "alone: ends well" [ $? = 0 ]
check "alone: no socket is left" [ ! -e alone.sock ]
check "alone: two at a time are refused" grep -q once <("$holdfast" checkpoint stage --once \
    --socket x alone-fast alone 2>&1)
HOLDFAST_STAGE_SOCKET=$dir/alone.sock HOLDFAST_RUN_DIR=$dir SNAP_STEPS=5 "$snapper" >none.out
check "none: the rank hears that nobody listens" grep -q 'not saved: nobody takes snapshots' \
    none.out

# With torch: killed and resumed, it ends with the same weights as without.
if have_torch; then
	example=$flow_src/examples/snapshot.py
	run 0 whole --nproc-per-node 2 "${opts[@]}" --checkpoint-dir whole \
	    --stage "64M:$dir/fast" -- "$example" --steps 30
	run 0 cut --nproc-per-node 2 "${opts[@]}" --checkpoint-dir cut \
	    --stage "64M:$dir/fast" -- "$example" --steps 30 --die 25
	check "torch: resumed at 20" grep -q 'resumes at step 20' "$(rank_log cut 2 0)"
	check "torch: same weights" diff <(sed -n 's/.* done//p' "$(rank_log whole 1 0)") \
	    <(sed -n 's/.* done//p' "$(rank_log cut 2 0)")
	check "torch: all is whole" all_valid cut valid
fi

RANDOM=${SNAPSHOT_SEED:-815}
export SNAP_STEPS=$((kills * 1000)) SNAP_PACE=0.015
start_kill() {
	begin kill --nproc-per-node 2 "${opts[@]}" --checkpoint-dir kill \
	    --stage "64M:$dir/fast" --max-restarts 1000 --grace 20s -- "$snapper"
}
start_kill
wait_for "kill: saves" test -e kill/step00000010
kill_some "$kills" valid
before=$(newest kill)
later() {
	[ "$(newest kill)" -gt "$before" ]
}
wait_for "kill: saves go on" later
kill -TERM "$run_pid"
end "$run_pid"
check "kill: stopped as asked" [ $? = 143 ]
check "kill: all is durable" all_valid kill valid
check "kill: nothing is left" nothing_left
flow_end
