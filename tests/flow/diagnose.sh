#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# diagnose.sh - holdfast diagnose as people and scripts use it: cards, JSON, exit statuses,
# output that cannot be written, garbage.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"

steps() {
	for step in $(seq "$1" "$2"); do
		echo "iteration $step/ 900 | lm loss: 2.0E+00 | grad norm: 0.9 |"
	done
}
{
	steps 1 20
	echo '[rank1]: Traceback (most recent call last):'
	echo '[rank1]:   File "train.py", line 3, in main'
	echo '[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.15 GiB'
	echo '[rank0]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network error, NCCL version 2.21.5'
} >oom.log
steps 1 20 >ok.log
{ cat ok.log; echo 'Traceback (most recent call last):'; echo '  File "t.py", line 3, in f'; } >torn.log
: >empty.log

# status WANT ARGUMENT...: runs diagnose, keeps its output in out, err
status() {
	local want=$1 got
	shift
	"$holdfast" diagnose "$@" >out 2>err </dev/null
	got=$?
	[ "$got" = "$want" ] || { echo "exit status $got"; cat out err; return 1; }
}
has() { grep -qF -- "$1" out || { cat out err; return 1; }; }
# The output is one object in valid UTF-8 on one line, and the expression holds for it.
json() {
	"$python" - "$1" out <<-'CHECK'
	import json, sys
	data = open(sys.argv[2], "rb").read()
	text = data.decode("utf-8", errors="strict")
	assert text.endswith("\n") and text.count("\n") == 1, text
	v = json.loads(text)
	assert eval(sys.argv[1]), v
	CHECK
}

check "a cause: 0" status 0 oom.log
check "... in plain words" has '| A rank asked for more GPU memory than there is.'
check "... where" has '| where   GPU 1, rank 1, step 20, in training'
check "... proof" has '| proof   oom.log:23'
check "... what to do" has '| do      do not restart yet'
check "... at most 15 rows of 80 columns" \
    awk 'length($0) > 80 || NR > 15 { exit 1 }' out
check "no error: 0" status 0 ok.log
check "... says what was read" has '1 file, 1.1 KB, 20 lines; last step 20'
check "empty: 0" status 0 empty.log
check "... says so" has 'The logs are empty.'
check "undetermined: 1" status 1 torn.log
check "nothing to read: 2" status 2 absent.log
check "no operand: 2" status 2
check "unknown option: 2" status 2 --jsn oom.log
check "one file of two is not there: 0" status 0 oom.log absent.log
check "... and is named" has '| unread  absent.log'

check "json" status 0 --json oom.log
check "... is one object" json \
    "v['reason'] == 'gpu_oom' and v['inputs']['files'] == 1 and 'findings' not in v"
check "json with all findings" status 0 --json --all oom.log
check "... has them in order" json \
    "[f['role'] for f in v['findings']] == ['cause', 'echo'] and v['findings'][0]['line'] == 23"
check "all for people" status 0 --all oom.log
check "... names the part of each" has '| echo    rank 0'
check "... quotes lines whole in a file" has 'oom.log:24: [rank0]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network error, NCCL version 2.21.5'
cp out card.log
check "a card and a list are no evidence" status 0 card.log
check "..." has 'no error found'

check "a rule by itself: 0" status 0 --explain-rule cuda-oom
check "... shows its samples" has '| sample  '
check "a rule on logs: 0" status 0 --explain-rule cuda-oom oom.log
check "... says that it won" has '| cause   oom.log:23: the cause'
cp out card.log
check "which is no evidence either" status 0 card.log
check "..." has 'no error found'
check "a rule as JSON: 0" status 0 --json --explain-rule cuda-oom oom.log
check "... is one object" json \
    "v['rule']['id'] == 'cuda-oom' and v['lines'][0]['outcome'] == 'cause'"
check "no such rule: 2" status 2 --explain-rule cuda-oomm oom.log
check "not together with --follow: 2" status 2 --follow --explain-rule cuda-oom oom.log

# The rules themselves.
mkdir site
cat >site/mine.yaml <<-'RULES'
	- {id: site-lost, reason: gpu_lost, role: root, match: 'site says lost'}
	- {id: site-typo, reason: gpu_lots, role: root, match: 'site says lots'}
RULES
rules() {
	local want=$1 got
	shift
	"$holdfast" rules "$@" >out 2>err
	got=$?
	[ "$got" = "$want" ] || { echo "exit status $got"; cat out err; return 1; }
}
check "rules of a layer" rules 0 list --rules site --layer mine
check "... only those" [ "$(cut -d ' ' -f 1 out | tr '\n' ' ')" = 'site-lost site-typo ' ]
check "rules of a reason" rules 0 list --json --reason gpu_lost
check "... only those, with samples" "$python" -c "
import json
v = [json.loads(line) for line in open('out')]
assert v and all(r['reason'] == 'gpu_lost' and r['examples'] for r in v)"
check "no such layer: 2" rules 2 list --layer mine
check "no such reason: 2" rules 2 list --reason gpu_lots
check "a rule" rules 0 show xid-79
check "... with samples" has '| sample  '
check "lint finds a mistake: 1" rules 1 lint --json site
check "... and says where" "$python" -c "
import json
v = [json.loads(line) for line in open('out')]
assert any(r.get('file') == 'site/mine.yaml' and r['line'] == 2 for r in v), v
assert v[-1]['problems'] == len(v) - 1, v"
check "shipped rules pass their samples" rules 0 test
rules_full() { "$holdfast" rules list >/dev/full; }

# Colours only for a terminal, and not with NO_COLOR (which lib.sh sets).
escape=$(printf '\033')
terminal() {
	env -u NO_COLOR "$@" script -qec "stty cols 80; $holdfast diagnose oom.log" /dev/null >out
}
if command -v script >/dev/null; then
	check "on a terminal" terminal
	check "... in colours" grep -q "$escape\[" out
	check "on a terminal, NO_COLOR" terminal NO_COLOR=1
	check "... without" [ "$(grep -c "$escape" out)" = 0 ]
fi

# Output that cannot be written is an error, whatever the verdict.
unwritten() {
	local want=$1
	shift
	"$@" 2>err
	[ $? = 2 ] && grep -q "$want" err || { cat err; return 1; }
}
full() { "$holdfast" diagnose "$@" oom.log >/dev/full; }
closed() { "$holdfast" diagnose "$@" oom.log >&-; }
# The reader is gone before the log is even there.
torn_pipe() {
	{ until [ -e gone ]; do sleep 0.02; done; cat oom.log; } |
	    "$holdfast" diagnose --json - | { exec <&-; : >gone; }
	return "${PIPESTATUS[1]}"
}
check "full disk: 2" unwritten 'No space left' full
check "full disk, JSON: 2" unwritten 'No space left' full --json --all
check "full disk, rules: 2" unwritten 'No space left' rules_full
check "closed output: 2" unwritten 'closed' closed
check "reader went away: 2" unwritten 'Broken pipe' torn_pipe

# Whatever the bytes are, JSON is JSON.
"$python" - "$holdfast" <<-'GARBAGE' >garbage.out 2>&1
	import json, random, subprocess, sys
	r = random.Random(7)
	seeds = [b"KeyError: '%s'\n", b"\xff\xfeRuntimeError: CUDA error: %s\n",
	    b"[rank%s]: CUDA out of memory. Tried\n", b"NVRM: Xid (PCI:%s): 79, lost\n",
	    b"slurmstepd: error: *** JOB 1 ON %s CANCELLED AT x DUE TO TIME LIMIT ***\n",
	    b"Traceback (most recent call last):\n%s\n", b"step %s loss 1.0\n", b"%s"]
	def junk():
	    n = r.choice((0, 3, 40, 5000))
	    pick = r.choice((lambda: r.randrange(256), lambda: r.randrange(128, 256),
	        lambda: r.choice(b"\0\x01\x1b\x7f\x80\xc0\xc3\xe2\xed\xa0\xf4\xff[]{}\"\\:;\r\n ")))
	    return bytes(pick() for _ in range(n))
	for i in range(150):
	    log = b"".join(r.choice(seeds).replace(b"%s", junk()) for _ in range(r.randrange(1, 9)))
	    if i % 10 == 0:
	        log = log.decode("latin-1").encode("utf-16")
	    name = b"g\xe9\xff\x01.log" if i % 3 == 0 else b"g.log"
	    open(name, "wb").write(log)
	    for options in (["--json"], ["--json", "--all"], [], ["--all"]):
	        p = subprocess.run([sys.argv[1], "diagnose", *options, name], capture_output=True)
	        assert p.returncode in (0, 1), (i, p)
	        text = p.stdout.decode("utf-8", errors="strict")
	        if options and options[0] == "--json":
	            assert text.count("\n") == 1 and text[-1] == "\n", (i, text)
	            json.loads(text)
	        else:
	            assert all(c == "\n" or c >= " " and not 0x7f <= ord(c) < 0xa0 for c in text), (i, text)
GARBAGE
check "garbage gives JSON and clean cards" [ $? = 0 ] || cat garbage.out
flow_end
