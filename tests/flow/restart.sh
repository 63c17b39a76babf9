#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# restart.sh - what follows a failure: restart or stop, budgets, exit statuses, and no
# process of an attempt alive when the next one starts.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"

quick=(--nproc-per-node 3 --tee none --failure-grace 500ms --backoff 10ms)
export FAKE_STEPS=5

# A kill without a record that explains it: an echo, and worth a restart.
FAKE_FAULT=kill:1:3 run 0 kill "${quick[@]}" -- "$fake"
check "kill: the reason" \
    verdict kill "d['reason'] == 'process_killed' and d['status'] == 'symptom_only'"
check "kill: rank 1 is the root" verdict kill "d['root']['rank'] == 1"
check "kill: one restart" journal kill "len(of('attempt')) == 2"
check "kill: journal is complete" journal_complete kill

# The other ranks end after TERM, or by KILL when they do not hear it.
FAKE_FAULT=segv:2:2 run 0 segv "${quick[@]}" -- "$fake"
check "segv: the reason" verdict segv "d['reason'] == 'native_crash'"
check "segv: rank 2 is the root" verdict segv "d['root']['rank'] == 2"

# Status 7 and not a word of why.
FAKE_FAULT=exit:0:2 run 0 exit "${quick[@]}" -- "$fake"
check "exit: undetermined, and tried again" journal exit "len(of('attempt')) == 2"

# A deterministic error: one retry, then a person is needed.
FAKE_FAULT='error:1:3:*' run 1 error "${quick[@]}" -- "$fake"
check "error: two attempts" journal error "len(of('attempt')) == 2"
check "error: the reason" verdict error "d['reason'] == 'key_error'"
check "error: the proof" verdict error \
    "d['root']['text'].startswith('KeyError') and d['root']['rank'] == 1"
check "error: what is called for" verdict error "d['action']['kind'] == 'stop'"
check "error: retried, then stopped" journal error \
    "[r['kind'] for r in of('decision')] == ['restart', 'stop']"
check "error: one fingerprint" \
    journal error "len({r['fingerprint'] for r in of('decision')}) == 1"
check "error: status is stopped" query error status.json "d['state'] == 'stopped'"
check "error: journal is complete" journal_complete error

# Started again by hand, it has its one retry again.
FAKE_FAULT='error:1:3:*' run 1 error "${quick[@]}" -- "$fake"
check "error again: attempts 3 and 4" \
    journal error "[r['attempt'] for r in of('attempt')] == [1, 2, 3, 4]"

# The budget.
FAKE_FAULT='kill:1:3:*' run 3 budget "${quick[@]}" --max-restarts 2 -- "$fake"
check "budget: three attempts" journal budget "len(of('attempt')) == 3"
check "budget: said so" grep -qi budget budget.out

# A rank that ignores TERM, in a run where another one dies.
cat >deaf <<-'DEAF'
	#!/bin/bash
	if [ "$RANK" = 1 ] && [ "$HOLDFAST_ATTEMPT" = 1 ]; then
		trap '' TERM
		echo "deaf pid $$"
		while :; do sleep 1; done
	fi
	[ "$HOLDFAST_ATTEMPT" = 2 ] && exit 0
	until grep -q deaf "$HOLDFAST_RUN_DIR/attempts/0001/rank00001.log"; do sleep 0.02; done
	exit 7
DEAF
chmod +x deaf
run 0 deaf "${quick[@]}" -- ./deaf
check "deaf: a second attempt" journal deaf "len(of('attempt')) == 2"
check "deaf: nothing is left" nothing_left

# A descendant in a session of its own that nobody waits for, with the log open.
cat >stray <<-'STRAY'
	#!/bin/bash
	if [ "$HOLDFAST_ATTEMPT" = 1 ]; then
		[ "$RANK" = 1 ] || exec sleep 3600
		setsid bash -c 'trap "" TERM; (sleep 3600 & echo "stray $! $$" >stray.pids; wait) & exit'
		exit 7
	fi
	for pid in $(sed 's/stray//' stray.pids); do
		! kill -0 $pid || echo "stray $pid is alive"
	done
STRAY
chmod +x stray
run 0 stray "${quick[@]}" -- ./stray
check "stray: it was started" [ -s stray.pids ]
check "stray: gone before attempt 2 began" \
    bash -c "! grep -r 'is alive' state/stray/attempts/0002"
check "stray: nothing is left" nothing_left

# Wrapper mode with a launcher that has nothing to launch: its log is the node's.
mkdir bin
printf '#!/bin/bash\nenv | grep ^PET_\nexit 7\n' >bin/torchrun
chmod +x bin/torchrun
PET_TEE=0 run 3 pet --tee none --max-restarts 0 -- bin/torchrun
cat state/pet/attempts/0001/*.log >pet.log
check "wrapper: torchrun's defaults by PET_" \
    bash -c "grep -q '^PET_MAX_RESTARTS=0' pet.log && grep -q '^PET_MASTER_PORT=' pet.log"
check "wrapper: what the user set is kept" grep -qx PET_TEE=0 pet.log

# {holdfast.*} without a checkpoint, and other braces
run 0 braces --nproc-per-node 1 -- echo 'a{b}c' '{holdfast.attempt}'
check "other braces stay" grep -q 'a{b}c' "$(rank_log braces 1 0)"
flow_end
