#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stage.sh - saves go to memory and from there to the durable directory: with and
# without failures, and under kill -9 of trainer, copying process, agent and supervisor
# at random moments (STAGE_KILLS, 10; STAGE_SEED).
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/flow/saves.sh
. "$flow_src/tests/flow/saves.sh"

saver=$flow_src/tests/flow/fake-saver
opts=(--nproc-per-node 1 --tee none --backoff 10ms --failure-grace 500ms)
kills=${STAGE_KILLS:-10}
# shellcheck disable=SC2034 # for pids_of
trainer="fake-saver"
mkdir fast

empty() {
	[ -z "$(find fast -mindepth 2 2>/dev/null)" ]
}

# A death in the middle: the next attempt starts from memory.
SAVER_DIE=33 run 0 die "${opts[@]}" --checkpoint-dir die --stage "64M:$dir/fast" -- "$saver"
check "die: resumed at 30" grep -q 'resumes at 30' "$(rank_log die 2 0)"
check "die: from memory" journal die \
    "of('attempt')[1]['resume']['path'].startswith('$dir/fast/')"
check "die: all is durable" all_valid die valid unverified
check "die: the last one too" [ "$(newest die)" = 60 ]
check "die: as the journal says" as_told die die
check "die: the tracker names the last one" grep -q '"step": 60' die/latest.json
check "die: memory is given back" empty
check "die: journal is complete" journal_complete die
check "die: nothing is left" nothing_left

# No room for one more: the durable directory is used, and that is said.
SAVER_KIND=0 SAVER_PACE=0.05 run 0 room "${opts[@]}" --checkpoint-dir room --stage "1M:$dir/fast" -- "$saver"
check "room: switched" grep -q 'saved to the durable directory' room.out
check "room: all is durable" all_valid room valid unverified
check "room: the last one too" [ "$(newest room)" = 60 ]

# Much less room than was said, and the first save at once.
if mkdir tiny && mount -t tmpfs -o size=1m none tiny 2>/dev/null; then
	SAVER_EVERY=10 SAVER_PACE=0.05 SAVER_STEPS=30 run 0 tiny "${opts[@]}" \
	    --checkpoint-dir tiny-ck --stage "200M:$dir/tiny" -- "$saver"
	check "tiny: one attempt" journal tiny "len(of('attempt')) == 1"
	check "tiny: said so" grep -q 'saved to the durable directory' tiny.out
	umount tiny
fi

# A fast directory that is not ours alone is refused.
mkdir other
run 0 ours "${opts[@]}" --checkpoint-dir ours --stage "64M:$dir/other" -- "$saver"
name=$(basename "$(readlink state/ours/stage)")
mkdir -p "other/$name" && chmod 777 "other/$name"
run 1 ours "${opts[@]}" --checkpoint-dir ours --stage "64M:$dir/other" -- "$saver"
check "ours: said why" grep -q 'not a directory of this user alone' ours.out

# Asked to stop: what is complete becomes durable within the grace.
SAVER_STEPS=100000 begin stop "${opts[@]}" --checkpoint-dir stop \
    --stage "64M:$dir/fast" --stage-bandwidth 4M --grace 20s -- "$saver"
wait_for "stop: some saves" test -e stop/step00000030.pt
# As a scheduler does, every process of the job, and twice.
# shellcheck disable=SC2046
kill -TERM $(pids_of writer) && kill -TERM $(pids_of writer) "$run_pid"
end "$run_pid"
check "stop: exit status" [ $? = 143 ]
check "stop: all is durable" all_valid stop valid unverified
check "stop: nothing stays in memory" empty
check "stop: nothing is left" nothing_left

# The fast directory is lost, as with the node: from the durable one.
SAVER_STEPS=30 run 0 lost "${opts[@]}" --checkpoint-dir lost --stage "64M:$dir/fast" -- "$saver"
rm -rf fast/*
SAVER_STEPS=60 run 0 lost "${opts[@]}" --checkpoint-dir lost --stage "64M:$dir/fast" -- "$saver"
check "lost: resumed from the durable one" grep -q 'resumes at 30' "$(rank_log lost 2 0)"
check "lost: the last one" [ "$(newest lost)" = 60 ]

RANDOM=${STAGE_SEED:-4711}
export SAVER_STEPS=$((kills * 1000)) SAVER_PACE=0.015
start_kill() {
	begin kill "${opts[@]}" --checkpoint-dir kill --stage "64M:$dir/fast" \
	    --max-restarts 1000 --grace 20s -- "$saver"
}
start_kill
wait_for "kill: saves" test -e kill/step00000030.pt
kill_some "$kills" valid unverified
kill -TERM "$run_pid"
end "$run_pid"
check "kill: stopped as asked" [ $? = 143 ]
check "kill: all is durable" all_valid kill valid unverified
check "kill: nothing is left" nothing_left
flow_end
