#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stop.sh - ending a run on request: signals, holdfast stop, ranks that do not hear.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"

export FAKE_UNTIL=$dir/never
training() {
	grep -q '^step 3 ' "$(rank_log "$1" 1 0)" && grep -q '^step 3 ' "$(rank_log "$1" 1 1)"
}
# ends_with STATUS: what the run began last must exit with
ends_with() {
	local got
	end "$run_pid"
	got=$?
	check "exit status $1" [ "$got" = "$1" ]
}

for signal in TERM:143 INT:130; do
	name=${signal%:*}
	begin "$name" --nproc-per-node 2 --grace 2s -- "$fake"
	wait_for "$name: steps" training "$name"
	kill -"$name" "$run_pid"
	ends_with "${signal#*:}"
	check "$name: nothing is left" nothing_left
	check "$name: status is stopped" query "$name" status.json "d['state'] == 'stopped'"
	check "$name: journal is complete" journal_complete "$name"
	check "$name: no restart" journal "$name" "len(of('attempt')) == 1"
done

# holdfast stop, from another process
begin ask --nproc-per-node 2 --grace 2s -- "$fake"
wait_for "ask: steps" training ask
check "stop: is accepted" "$holdfast" stop ask
ends_with 143
check "stop: nothing is left" nothing_left
check "stop: the journal says who asked" journal ask "len(of('stop')) >= 1"
check "stop: a run that has ended says so" bash -c "'$holdfast' stop ask; [ \$? = 1 ]"
check "stop: an unknown run is exit 2" bash -c "'$holdfast' stop nosuch; [ \$? = 2 ]"

# Ranks deaf to TERM, and one that is stopped: KILL after the grace.
FAKE_FAULT=ignore-term:1:3 begin deaf --nproc-per-node 2 --grace 300ms -- "$fake"
wait_for "deaf: rank 0 trains" grep -q '^step 5 ' "$(rank_log deaf 1 0)"
pid0=$(rank_pid deaf 1 0) pid1=$(rank_pid deaf 1 1)
kill -STOP "$pid0"
kill -TERM "$run_pid"
ends_with 143
check "deaf: both ranks are gone" dead "$pid0" "$pid1"

# A signal that comes while a restart is waited for.
begin wait --nproc-per-node 2 --backoff 1h --failure-grace 300ms \
    -- bash -c 'echo "ConnectionRefusedError: [Errno 111] Connection refused" >&2; exit 1'
wait_for "wait: a decision" journal wait "len(of('decision')) >= 1"
kill -TERM "$run_pid"
ends_with 143
check "nothing is left at the end" nothing_left
flow_end
