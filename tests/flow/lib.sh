# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lib.sh - what flow tests share: a folder of their own, runs in the background, waiting
# for conditions, checks, and an end that leaves no process behind.
#
# A test sources this file, calls `check' for each thing it wants to be true, and ends
# with `flow_end'.  Tests go on after a failed check.
set -u
flow_src=$(cd "${top_srcdir:-$(dirname "$0")/../..}" && pwd)
flow_build=$(cd "${top_builddir:-$flow_src}" && pwd)
holdfast=${HOLDFAST:-$flow_build/holdfast}
# shellcheck disable=SC2034 # for the tests
fake=$flow_src/tests/flow/fake-rank
# shellcheck disable=SC2034
train=$flow_src/examples/train.py
unset HOLDFAST HOLDFAST_FAULT
for flow_name in $(compgen -e | grep -E '^(HOLDFAST|FAKE|PET|TORCHELASTIC|SLURM)_'); do
	unset "$flow_name"
done
# Limits are generous: they only bound a test that fails.
patience=${FLOW_PATIENCE:-60}

# The system's own, where the distribution's torch is; others may be slow to start.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
[ -x "$holdfast" ] || { echo "$holdfast is not built"; exit 99; }

dir=$(mktemp -d "${TMPDIR:-/tmp}/hf-XXXXXX") || exit 99
cd "$dir" || exit 99
# Marks every process that a test starts, see flow_processes.
export HOLDFAST_STATE_DIR=$dir/state
export PYTHONDONTWRITEBYTECODE=1 NO_COLOR=1
failures=0 checks=0

# Pids of living processes that were started with this test's state directory; a
# zombie has no environment, and the grep that looks is gone when it has answered.
flow_processes() {
	local f files
	files=$(grep -lsz "^HOLDFAST_STATE_DIR=$dir/state\$" /proc/[0-9]*/environ)
	for f in $files; do
		f=${f%/environ}
		grep -q '^State:.[^ZX]' "$f/status" 2>/dev/null && printf '%s\n' "${f#/proc/}"
	done
	return 0
}

# command_line PID: with blanks between its words; nothing when it is gone
command_line() {
	{ tr '\0' ' ' <"/proc/$1/cmdline"; } 2>/dev/null
}

flow_cleanup() {
	local pids round
	for round in 1 2 3 4 5; do
		pids=$(flow_processes)
		[ -n "$pids" ] || break
		# shellcheck disable=SC2086
		kill -KILL $pids 2>/dev/null
		sleep "0.$round"
	done
	cd / || exit 99
	if [ "$failures" -gt 0 ] && [ -n "${FLOW_KEEP-}" ]; then
		echo "kept: $dir"
	else
		rm -rf "$dir"
	fi
}
trap flow_cleanup EXIT
trap 'exit 99' INT TERM HUP

# check TEXT COMMAND...: one thing that must be true
check() {
	local text=$1
	shift
	checks=$((checks + 1))
	if "$@" >check.out 2>&1; then
		echo "ok - $text"
		return 0
	fi
	failures=$((failures + 1))
	echo "FAILED - $text"
	echo "  was: $*"
	sed 's/^/  | /' check.out | head -n 60
	return 1
}

flow_end() {
	[ "$failures" -eq 0 ] || show_all
	echo "$checks checks, $failures failed"
	[ "$failures" -eq 0 ]
	exit
}

# What a person would look at after a failure.
show_all() {
	local f
	for f in ./*.out state/*/journal.jsonl state/*/verdict.json state/*/agents/*; do
		if [ ! -s "$f" ] || [ "$f" = ./check.out ]; then
			continue
		fi
		echo "--- $f"
		tail -n 40 "$f" | cut -c 1-400
	done
}

# wait_for TEXT COMMAND...: polls until the command succeeds; the test ends there when
# patience does
wait_for() {
	local text=$1 limit=$((SECONDS + patience))
	shift
	until "$@" >/dev/null 2>&1; do
		if [ "$SECONDS" -ge "$limit" ]; then
			failures=$((failures + 1))
			echo "FAILED - waited $patience s for: $text"
			flow_end
		fi
		sleep 0.02
	done
	return 0
}

# begin NAME ARGUMENT...: `holdfast run' in the background; its pid is in $run_pid
begin() {
	local name=$1
	shift
	"$holdfast" run --name "$name" "$@" >"$name.out" 2>&1 </dev/null &
	run_pid=$!
}

# end PID: waits for it, with a limit, and returns its exit status (not in a subshell)
end() {
	local pid=$1 limit=$((SECONDS + patience))
	while kill -0 "$pid" 2>/dev/null; do
		if [ "$SECONDS" -ge "$limit" ]; then
			echo "process $pid did not end within $patience s"
			return 124
		fi
		sleep 0.02
	done
	wait "$pid"
}

# run STATUS NAME ARGUMENT...: a whole run in the foreground that must exit with STATUS
run() {
	local want=$1 name=$2 got
	shift 2
	begin "$name" "$@"
	end "$run_pid"
	got=$?
	check "$name: exit status $want" [ "$got" = "$want" ] || tail -n 30 "$name.out"
}

# query NAME FILE EXPRESSION: see query.py; FILE is below the run directory
query() {
	"$python" "$flow_src/tests/flow/query.py" "state/$1/$2" "$3"
}
journal() {
	query "$1" journal.jsonl "$2"
}
verdict() {
	query "$1" verdict.json "$2"
}

# rank_log NAME ATTEMPT RANK: the path of its output
rank_log() {
	printf 'state/%s/attempts/%04d/rank%05d.log' "$1" "$2" "$3"
}

# rank_pid NAME ATTEMPT RANK: as fake-rank printed it
rank_pid() {
	sed -n 's/^rank .* pid \([0-9]*\) .*/\1/p' "$(rank_log "$1" "$2" "$3")" | head -n 1
}

# dead PID...: none of them runs (a zombie does not)
dead() {
	local pid
	for pid in "$@"; do
		[ ! -e "/proc/$pid" ] || grep -q '^State:.[ZX]' "/proc/$pid/status" 2>/dev/null ||
			return 1
	done
}

# nothing_left: no process of a rank is alive, and agent and supervisor end as well
nothing_left() {
	local pids limit=$((SECONDS + patience))
	for pids in $(flow_processes); do
		if grep -qz '^HOLDFAST_ATTEMPT=' "/proc/$pids/environ" 2>/dev/null; then
			ps -o pid,ppid,stat,args -p "$pids"
			return 1
		fi
	done
	while pids=$(flow_processes) && [ -n "$pids" ]; do
		if [ "$SECONDS" -ge "$limit" ]; then
			# shellcheck disable=SC2086
			ps -o pid,ppid,stat,args -p "$(echo $pids | tr ' ' ,)"
			return 1
		fi
		sleep 0.02
	done
	return 0
}

# journal_complete NAME: every line is an object, seq counts up without a gap, each
# attempt that began has ended, and the last record is the end
journal_complete() {
	journal "$1" "[r['seq'] for r in j] == list(range(1, len(j) + 1))
	    and all(r['time'] and r['time_ns'] for r in j)
	    and {r['attempt'] for r in of('attempt')} == {r['attempt'] for r in of('gone')}
	    and j[-1]['type'] == 'end'"
}

have_torch() {
	[ "$python" = /usr/bin/python3 ] && "$python" -c 'import torch' 2>/dev/null
}
