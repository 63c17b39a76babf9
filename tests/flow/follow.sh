#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# follow.sh - holdfast diagnose --follow: a log that is not there yet, grows, is renamed and
# cut; what it prints, how it ends, what it costs while nothing happens.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"

step() { echo "iteration $1/ 900 | lm loss: 2.0E+00 | grad norm: 0.9 |"; }
oom='[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.'
peer='[rank0]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network error, NCCL version 2.21.5'

# follow NAME ARGUMENT...: in the background, output in NAME.out and NAME.err
follow() {
	local name=$1
	shift
	"$holdfast" diagnose --follow "$@" >"$name.out" 2>"$name.err" </dev/null &
	follow_pid=$!
}
said() { grep -qF -- "$2" "$1.out"; }
count() { [ "$(grep -cF -- "$2" "$1.out")" = "$3" ] || { cat "$1.out"; return 1; }; }
# ended STATUS: the last `follow' ends with it
ended() {
	local got
	end "$follow_pid"
	got=$?
	[ "$got" = "$1" ] || { echo "exit status $got"; cat ./*.out ./*.err; return 1; }
}

follow grows grow.log
wait_for "it says what it waits for" grep -q 'waiting for grow.log' grows.err
{ step 1; step 2; step 3; } >grow.log
printf %s "${oom:0:30}" >>grow.log
echo "${oom:30}" >>grow.log
wait_for "a line in two pieces is found" said grows 'grow.log:4: [rank1]: torch.OutOfMemoryError'
check "as a candidate, with rule and reason" grep -q '^| maybe .* rank 1 .*gpu_oom' grows.out
mv grow.log grow.log.1
echo "$peer" >grow.log
wait_for "the file that took its place is read" said grows 'grow.log:1: [rank0]'
for _ in 1 2 3 4 5 6 7 8 9; do echo "$peer"; done >>grow.log
wait_for "more of the same" said grows 'grow.log:3:'
kill -INT "$follow_pid"
check "SIGINT ends it with the verdict: 0" ended 0
check "repeated ones are not told again and again" count grows '| symptom' 3
check "the cause is in the file that was renamed" said grows '| proof   grow.log (rotated):4'
check "what came after it is counted" said grows 'nccl_remote_error (10 lines)'

# What is cut off is gone, its findings are not.
{ step 1; echo "$oom"; } >cut.log
follow cut cut.log
wait_for "found" said cut 'cut.log:2:'
{ echo x; echo "$peer"; echo y; } >cut.log
wait_for "found behind the cut" said cut 'cut.log:2: [rank0]'
kill -TERM "$follow_pid"
check "SIGTERM as well: 0" ended 0
check "the cause is kept with its line" said cut '| proof   cut.log (cut off):2'
check "the loss is said" said cut 'bytes were cut off'

# More files of one name than are held open.
holds() { readlink "/proc/$follow_pid/fd"/* | grep -q "/$1\$"; }
{ step 1; echo "$oom"; } >many.log
follow many many.log
wait_for "found" said many 'many.log:2:'
for i in 1 2 3 4 5 6 7 8 9 10; do
	mv many.log "many.log.$i"
	echo x >many.log
	wait_for "file $i is read" holds many.log
done
kill -TERM "$follow_pid"
check "SIGTERM: 0" ended 0
check "the cause is kept with its line" said many '| proof   many.log (cut off):2'
check "the loss is said" said many 'older files of this name are gone'

# Training that goes on takes a finding back, also when its line is cut off then.
{ step 1; echo "$oom"; } >on.log
follow on on.log
wait_for "found" said on 'on.log:2:'
{ step 2; step 3; step 4; echo "$peer"; } >>on.log
wait_for "read on" said on 'on.log:6:'
{ step 5; echo "$peer"; step 6; step 7; step 8; } >on.log
wait_for "read behind the cut" said on 'on.log:2: [rank0]'
kill -INT "$follow_pid"
check "went on: 0" ended 0
check "no error" said on 'no error found'

# The job was ended, and nothing comes any more.
{ step 1; echo "$oom"; echo 'W 2024-01-01 Sending process 12 closing signal SIGTERM'; } >over.log
{ step 1; echo 'slurmstepd: error: *** JOB 345 ON node01 CANCELLED AT 2024-04-16T22:14:41 DUE TO TIME LIMIT ***'; } >limit.log
follow limit limit.log
limit_pid=$follow_pid
follow over --json over.log
check "it ends by itself: 0" ended 0
follow_pid=$limit_pid
check "the scheduler's word ends it as well: 0" ended 0
check "... with the verdict" said limit 'diagnosis: job_time_limit'
check "lines of JSON, the verdict last" "$python" - over.out <<-'CHECK'
	import json, sys
	v = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
	assert [o["schema"] for o in v] == ["holdfast.finding/1"] * 2 + ["holdfast.verdict/1"], v
	assert [o["role"] for o in v[:2]] == ["candidate", "teardown"], v
	assert v[2]["reason"] == "gpu_oom" and v[2]["root"]["line"] == 2, v
CHECK

# Standard input ends when its writer does.
{ step 1; echo "$oom"; printf 'no newline'; } | "$holdfast" diagnose --follow - >in.out 2>in.err
check "standard input: 0" [ $? = 0 ]
check "... with a verdict" said in '| proof   -:2'

check "a folder is refused: 2" bash -c "'$holdfast' diagnose --follow . 2>/dev/null; [ \$? = 2 ]"
follow never never.log
wait_for "it waits" grep -q 'waiting for never.log' never.err
ticks() { awk '{ print $14 + $15 }' "/proc/$follow_pid/stat"; }
before=$(ticks)
sleep 3
check "idle costs nothing" [ $(($(ticks) - before)) -le 3 ]
kill -INT "$follow_pid"
check "nothing was ever there: 2" ended 2
check "nothing is left at the end" nothing_left
flow_end
