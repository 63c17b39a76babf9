#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kernel.sh - what the kernel says while an attempt runs explains how it ended: a rank
# that the out-of-memory killer takes in a memory cgroup, and one of somebody else.
# Where no cgroup can be made or /dev/kmsg not be read, only that is told.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"

opts=(--tee none --nproc-per-node 2 --backoff 10ms --failure-grace 300ms)

# A memory cgroup of 64 MB below our own one.
own=$(sed -n 's/^[0-9]*:memory:\(.*\)/memory\1/p; s/^0::\(.*\)/\1/p' /proc/self/cgroup)
cgroup='' limit=''
for place in $own; do
	try=/sys/fs/cgroup/$place/holdfast-test-$$
	mkdir "$try" 2>/dev/null || continue
	for limit in memory.limit_in_bytes memory.max; do
		if [ -w "$try/$limit" ] && echo 64M >"$try/$limit"; then
			cgroup=$try
			break 2
		fi
	done
	rmdir "$try"
done
[ -z "$cgroup" ] || [ ! -e "$cgroup/memory.swap.max" ] || echo 0 >"$cgroup/memory.swap.max"

# What a process does that takes more than it may.
cat >hungry <<-'HUNGRY'
	#!/bin/bash
	# hungry CGROUP
	echo $$ >"$1/cgroup.procs"
	exec python3 -c 'x = bytearray(b"x") * (300 << 20)'
HUNGRY
cat >rank <<-'RANK'
	#!/bin/bash
	# rank WHAT CGROUP
	echo "step 1 loss 5.0"
	if [ "$HOLDFAST_ATTEMPT" = 1 ] && [ "$RANK" = 1 ]; then
		[ "$1" != eat ] || exec ./hungry "$2"
		sleep 1
		printf 'Traceback (most recent call last):\n' >&2
		printf '  File "/home/user/train.py", line 7, in main\n' >&2
		printf "KeyError: 'layer'\n" >&2
		exit 1
	fi
	[ "$HOLDFAST_ATTEMPT" = 2 ] || sleep 2
	echo "done"
RANK
chmod +x hungry rank

if [ -z "$cgroup" ] || ! head -c 0 /dev/kmsg 2>/dev/null; then
	echo "ok - no memory cgroup or no kernel messages here: nothing to be seen"
	run 0 blind "${opts[@]}" -- ./rank fail
	check "blind: as without" journal blind "len(of('attempt')) == 2"
	flow_end
fi

run 0 oom "${opts[@]}" -- ./rank eat "$cgroup"
check "oom: the kernel's words are kept" grep -q 'kernel: .*Killed process' \
    state/oom/attempts/0001/*.kernel.log
check "oom: the reason" verdict oom "d['reason'] == 'host_oom' and d['status'] == 'diagnosed'"
check "oom: the rank" verdict oom "d['root']['rank'] == 1"

# Others' processes die on the same node; ours has a mistake of its own.
(sleep 0.5; exec ./hungry "$cgroup") &
victim=$!
(sleep 0.7; exec "$python" -c 'import ctypes; ctypes.string_at(0)') 2>/dev/null &
crashed=$!
run 0 other "${opts[@]}" -- ./rank fail "$cgroup"
wait "$victim" 2>/dev/null
check "other: was killed" [ $? = 137 ]
check "other: the reason is ours" verdict other "d['reason'] == 'key_error'"
wait "$crashed" 2>/dev/null
check "other: crashed" [ $? = 139 ]
check "other: neither is named" bash -c "! grep -qsE 'process $victim |\\[$crashed\\]' \
    state/other/attempts/0001/*.kernel.log"
rmdir "$cgroup"
check "nothing is left" nothing_left
flow_end
