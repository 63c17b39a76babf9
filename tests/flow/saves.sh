# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # variables of lib.sh, and of the test
# saves.sh - what tests of staging and of snapshots share; sourced behind lib.sh.

# all_valid DIR STATE...: every checkpoint in it, read to the last byte, is in one of
# these states
all_valid() {
	local place=$1
	shift
	"$holdfast" checkpoint list --full --json "$place" >list.json || return
	"$python" - "$@" <<-'CHECK'
	import json, sys
	rows = [json.loads(line) for line in open("list.json")]
	bad = [r for r in rows if r["state"] not in sys.argv[1:]]
	assert rows and not bad, bad[:5] or "none"
	CHECK
}
# as_told NAME DIR: what was said to be durable is there
as_told() {
	local name
	for name in $("$python" "$flow_src/tests/flow/query.py" "state/$1/journal.jsonl" \
	    "' '.join(r['stage']['name'] for r in of('stage')
	    if r['stage']['event'] == 'durable')"); do
		[ -e "$2/$name" ] || { echo "$name is lost"; return 1; }
	done
}
# newest DIR: the step of the newest valid one
newest() {
	"$holdfast" checkpoint latest --json "$1" |
	    "$python" -c 'import json, sys; print(json.load(sys.stdin)["step"])'
}
# pids_of ROLE: what can be killed; $trainer is the name of the trainer's program
pids_of() {
	local pid line
	for pid in $(flow_processes); do
		line=$(command_line "$pid")
		case $1:$line in
		rank:*python3*"$trainer"*) ;;
		writer:*"checkpoint stage"*) ;;
		agent:holdfast*" agent "* | supervisor:holdfast*" supervisor "*) ;;
		*) continue ;;
		esac
		printf '%s\n' "$pid"
	done
	return 0
}
# kill_some N STATE...: N times, kills one or several roles of the run `kill' at a random
# moment; what is in the directory `kill' must be in one of these states, and all there
# that was said to be durable.  start_kill starts the run.
kill_some() {
	local n=$1 i which role victims
	local roles=(rank writer agent supervisor "rank writer" "agent writer"
	    "supervisor writer" "rank agent supervisor writer")
	shift
	for ((i = 0; i < n; i++)); do
		sleep "0.$((RANDOM % 90 + 10))"
		which=${roles[RANDOM % ${#roles[@]}]}
		victims=
		for role in $which; do
			victims+=" $(pids_of "$role")"
		done
		# shellcheck disable=SC2086
		[ -z "${victims// /}" ] || kill -KILL $victims 2>/dev/null
		check "kill $i ($which): what is durable is whole" all_valid kill "$@"
		check "kill $i: nothing said to be durable is lost" as_told kill kill
		# Too many deaths of the supervisor end its parent; the same command
		# takes over.
		kill -0 "$run_pid" 2>/dev/null || start_kill
	done
}
