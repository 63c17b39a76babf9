#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# adopt.sh - Holdfast's own processes are killed: the ranks train on, or are proven gone.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"

export FAKE_UNTIL=$dir/until
opts=(--nproc-per-node 2 --tee none --failure-grace 500ms --backoff 10ms)

# role NAME: pids of this test's `holdfast ROLE' processes
role() {
	local pid
	for pid in $(flow_processes); do
		command_line "$pid" | grep -qE "(^|/)holdfast:? $1( |\$)" &&
			printf '%s\n' "$pid"
	done
	return 0
}
step_of() {
	grep -c '^step ' "$(rank_log "$1" "${2:-1}" 0)"
}
further() {
	[ "$(step_of "$1")" -gt "$2" ]
}
training() {
	grep -q '^step 3 ' "$(rank_log "$1" 1 0)" && grep -q '^step 3 ' "$(rank_log "$1" 1 1)"
}
supervisor_other() {
	local pid
	pid=$(role supervisor)
	[ -n "$pid" ] && [ "$pid" != "$1" ]
}

# kill -9 of the supervisor: respawned, the same ranks train on.
begin one "${opts[@]}" -- "$fake"
wait_for "one: steps" training one
old=$(role supervisor) pid0=$(rank_pid one 1 0) pid1=$(rank_pid one 1 1)
check "one: there is one supervisor" [ "$(wc -w <<<"$old")" = 1 ]
kill -KILL "$old"
wait_for "one: a new supervisor" supervisor_other "$old"
before=$(step_of one)
wait_for "one: more steps" further one "$before"
check "one: the same ranks" kill -0 "$pid0" "$pid1"
touch until
end "$run_pid"
check "one: exit status 0" [ $? = 0 ]
check "one: one attempt" journal one "len(of('attempt')) == 1"
check "one: journal is complete" journal_complete one
check "one: no step is missing" bash -c "grep -o '^step [0-9]*' '$(rank_log one 1 0)' |
    awk '\$2 != NR { exit 1 }'"
rm until

# kill -9 of supervisor and parent: the same command takes over.
begin both "${opts[@]}" -- "$fake"
wait_for "both: steps" training both
pid0=$(rank_pid both 1 0) parent=$run_pid
kill -KILL "$parent" "$(role supervisor)"
wait "$parent" 2>/dev/null
before=$(step_of both)
wait_for "both: the ranks train on alone" further both "$before"
check "both: another command is refused" \
    bash -c "'$holdfast' run --name both --nproc-per-node 2 -- true; [ \$? = 2 ]"
begin both "${opts[@]}" -- "$fake"
wait_for "both: a new supervisor" supervisor_other none
before=$(step_of both)
wait_for "both: more steps" further both "$before"
check "both: the same rank" kill -0 "$pid0"
touch until
end "$run_pid"
check "both: exit status 0" [ $? = 0 ]
check "both: one attempt" journal both "len(of('attempt')) == 1"
check "both: journal is complete" journal_complete both
rm until

# kill -9 of the parent alone: the ranks live, the same command attaches.
begin parent "${opts[@]}" -- "$fake"
wait_for "parent: steps" training parent
pid0=$(rank_pid parent 1 0)
kill -KILL "$run_pid"
wait "$run_pid" 2>/dev/null
begin parent "${opts[@]}" -- "$fake"
before=$(step_of parent)
wait_for "parent: more steps" further parent "$before"
check "parent: the same rank" kill -0 "$pid0"
touch until
end "$run_pid"
check "parent: exit status 0" [ $? = 0 ]
rm until

# A living parent is not attached to: refused, saying who holds it.
begin held "${opts[@]}" -- "$fake"
wait_for "held: steps" training held
"$holdfast" run --name held "${opts[@]}" -- "$fake" >second.out 2>&1
check "held: a second run is refused with exit 2" [ $? = 2 ]
check "held: saying which process holds it" \
    grep -qE "(^|[^0-9])($run_pid|$(role supervisor))([^0-9]|\$)" second.out
check "held: in one line" [ "$(wc -l <second.out)" = 1 ]
touch until
end "$run_pid"
rm until

# kill -9 of agent and reaper: the ranks are orphans; they end before attempt 2 begins.
cat >orphan <<-'ORPHAN'
	#!/bin/bash
	if [ "$HOLDFAST_ATTEMPT" = 1 ]; then
		setsid sleep 3600 &
		echo "pids $$ $!" >>orphan.pids
		while :; do sleep 1; done
	fi
	for pid in $(sed 's/pids//' orphan.pids); do
		! kill -0 $pid 2>/dev/null || grep -q '^State:.Z' /proc/$pid/status ||
			echo "orphan $pid is alive"
	done
ORPHAN
chmod +x orphan
begin orphan "${opts[@]}" -- ./orphan
two_lines() {
	[ "$(wc -l <orphan.pids)" = 2 ]
}
wait_for "orphan: both ranks" two_lines
helpers=$(role agent; role reaper)
check "orphan: there are an agent and a reaper" [ "$(wc -w <<<"$helpers")" = 2 ]
# shellcheck disable=SC2086
kill -KILL $helpers
end "$run_pid"
check "orphan: the run went on to its end" [ $? = 0 ]
check "orphan: two attempts" journal orphan "len(of('attempt')) == 2"
check "orphan: none was alive in attempt 2" \
    bash -c "! grep -r 'is alive' state/orphan/attempts/0002"
check "nothing is left at the end" nothing_left
flow_end
