#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# output.sh - whatever the ranks print is kept byte for byte, in bounded memory.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"

cat >emit.py <<-'EMIT'
	import hashlib, os, random, sys, time
	kind, until = sys.argv[1:]
	r, out, h = random.Random(1), sys.stdout.buffer, hashlib.sha256()
	def put(data):
	    h.update(data)
	    out.write(data)
	if kind == "garbage":
	    for _ in range(64):
	        put(r.randbytes(65536))
	elif kind == "nul":
	    put(b"\0" * 100000 + b"after\n" + b"line\0with\0nul\n")
	elif kind == "long":
	    for _ in range(100):
	        put(b"x" * (1 << 20))
	elif kind == "bars":
	    for i in range(20000):
	        put(b"\r%3d%%|%s| step %d" % (i % 100, b"#" * 60, i))
	elif kind == "last":
	    put(b"no newline at the end")
	out.flush()
	with open(kind + ".sha", "w") as f:
	    f.write(h.hexdigest())
	os.rename(kind + ".sha", kind + ".done")
	while until != "-" and not os.path.exists(until):
	    time.sleep(0.02)
EMIT

# largest ROLE: peak resident memory in MB of the test's `holdfast ROLE' processes
largest() {
	local pid most=0 kb
	for pid in $(flow_processes); do
		command_line "$pid" | grep -qE "holdfast:? $1" || continue
		kb=$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status")
		[ "${kb:-0}" -le "$most" ] || most=$kb
	done
	echo $((most / 1024))
}
same() {
	[ "$(cat "$1.done")" = "$(sha256sum <"$(rank_log "$1" 1 0)" | cut -d ' ' -f 1)" ]
}

for kind in garbage nul long bars last; do
	begin "$kind" --nproc-per-node 1 --tee none -- "$python" emit.py "$kind" "$dir/$kind.go"
	wait_for "$kind: all is printed" [ -e "$kind.done" ]
	wait_for "$kind: all is written" same "$kind"
	agent=$(largest agent) supervisor=$(largest supervisor)
	# Sanitizers multiply memory; the bound is for the plain build.
	if ! grep -q fsanitize "$flow_build/Makefile"; then
		check "$kind: agent within 100 MB ($agent)" [ "$agent" -le 100 ]
		check "$kind: supervisor within 64 MB ($supervisor)" [ "$supervisor" -le 64 ]
	fi
	touch "$kind.go"
	end "$run_pid"
	check "$kind: exit status 0" [ $? = 0 ]
	check "$kind: byte for byte" same "$kind"
	check "$kind: journal is complete" journal_complete "$kind"
done

# The same on the terminal: nothing that a terminal would obey gets through unasked, and
# the run goes on when nobody reads.
begin deaf --nproc-per-node 1 --tee all -- "$python" emit.py garbage -
end "$run_pid"
check "deaf: exit status 0 with the garbage shown" [ $? = 0 ]
check "nothing is left at the end" nothing_left
flow_end
