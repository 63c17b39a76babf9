#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# refuse.sh - bad input: one line that names the thing, what is wrong with it and the next
# step; the right exit status; nothing started.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"

# refused TEXT PATTERN ARGUMENT...: exit 2, one line on stderr ($lines) that matches
lines=1
refused() {
	local text=$1 pattern=$2 got
	shift 2
	timeout 20 "$holdfast" "$@" >refused.out 2>refused.err </dev/null
	got=$?
	check "$text: exit status 2 (was $got)" [ "$got" = 2 ]
	check "$text: says so" grep -qE -- "$pattern" refused.err ||
		sed 's/^/  | /' refused.err
	check "$text: in $lines line" [ "$(wc -l <refused.err)" = "$lines" ]
}

refused "unknown verb" "unknown verb 'rum'.*'run'" rum
refused "unknown option" "unknown option '--nproc-per-nod'.*'--nproc-per-node'" \
    run --nproc-per-nod 4 -- true
refused "value out of range" "--nproc-per-node takes a number" \
    run --nproc-per-node -1 -- true
refused "value missing" "--name needs a value" run --name
refused "bad time" "--grace takes a time.*soon" run --grace soon -- true
refused "bad budget" "--max-restarts takes.*many" run --max-restarts many -- true
refused "bad tee" "--tee takes.*some" run --tee some -- true
refused "bad name" "--name takes.*\.hidden" run --name .hidden -- true
refused "name with a slash" "--name takes" run --name a/b -- true
refused "no command" "command" run --name x
HOLDFAST_GRACE=soon refused "bad environment" "HOLDFAST_GRACE in the environment.*soon" \
    run -n -- true
refused "more nodes" "not implemented" run --nnodes 2 -- true

refused "command not found" "no-such-program.*(No such file|not found)" \
    run --nproc-per-node 1 -- no-such-program
refused "command not found by path" "\./no-such.*No such file" \
    run --nproc-per-node 1 -- ./no-such
echo 'not a program' >plain
refused "command not executable" "\./plain.*Permission denied" \
    run --nproc-per-node 1 -- ./plain
refused "command is a folder" "\./folder|Permission|directory" \
    run --nproc-per-node 1 -- "$dir"
mkdir shut && chmod 0 shut
if [ "$(id -u)" -ne 0 ]; then
	refused "unreadable checkpoint folder" "shut.*Permission denied" \
	    run --nproc-per-node 1 --checkpoint-dir shut/in -- true
	refused "state directory not writable" "shut.*Permission denied" \
	    run --state-dir shut/state --nproc-per-node 1 -- true
fi
refused "state directory below a file" "plain.*Not a directory" \
    run --state-dir plain/state --nproc-per-node 1 -- true
refused "checkpoint directory is a file" "plain.*not a directory" \
    run --nproc-per-node 1 --checkpoint-dir plain -- true

# No space for the journal: a file system of one page, in a mount namespace.
cat >full.sh <<-'FULL'
	mkdir -p full && mount -t tmpfs -o size=4k none full && echo x >full/x || exit 77
	exec "$@"
FULL
unshare -rm bash full.sh "$holdfast" run --state-dir full --nproc-per-node 1 -- true \
    >refused.out 2>refused.err
case $? in
77) echo "no mount namespaces here: a full file system is not tried" ;;
2)
	check "no space for the journal: says so" \
	    grep -q 'full/default.*No space left on device' refused.err
	check "no space for the journal: in one line" [ "$(wc -l <refused.err)" = 1 ]
	;;
*)
	check "no space for the journal: refused" false
	cat refused.err
	;;
esac

# Configuration files
echo 'gracs: 5s' >conf
refused "unknown key" "conf:1.*gracs.*grace" run --config conf -- true
printf 'grace: 5s\ntee: [1\n' >conf
refused "broken YAML" "conf:[23]" run --config conf -- true
refused "no such configuration" "nowhere.*No such file" run --config nowhere -- true
printf 'grace: 7s\nmax-restarts: 1/1h\n' >conf
check "a good configuration passes" "$holdfast" run -n --config conf -- true

# Rules
mkdir rules
printf -- "- id: broken\n  reason: hang\n  role: root\n  match: '(unclosed'\n" >rules/site.yaml
lines=2 # the rule, and what can be done
refused "broken rule" "site\.yaml:[0-9]+" run --rules rules --nproc-per-node 1 -- true
lines=1
run 0 lenient --rules rules --rules-lenient --nproc-per-node 1 -- true

check "nothing was started by all that" \
    bash -c "ls state | grep -vx lenient | wc -l | grep -qx 0"
chmod 700 shut
flow_end
