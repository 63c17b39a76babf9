#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# smoke.sh - the benchmark itself works: its logs are what they claim to be, every program
# of it runs, each row has a number, nothing stays behind.  No time is judged.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/../flow/lib.sh"
bench=$flow_src/tests/bench
loggen=$flow_build/tests/bench/loggen

log() {
	"$loggen" "$@" 2>>counts.out
}
# count FILE WANT: lines and error lines as loggen counted them
count() {
	read -r lines errors < <(tail -n 1 counts.out)
	[ "$lines" = "$(wc -l <"$1")" ] && [ "$(((errors * 1000 + lines / 2) / lines))" = "$2" ]
}

log -e 20000 3000000 1 >one
check "two in a hundred lines are errors" count one 20
log -e 20000 3000000 1 >again
check "the same seed gives the same log" cmp one again
log -e 20000 3000000 2 >other
check "another seed gives another one" sh -c '! cmp -s one other'
printf '%s\n' 'NVRM: Xid (PCI:0000:3b:00): 79, pid=12345, GPU has fallen off the bus.' >sample
log -d sample -b 3 100000 1 >dense
check "in error text every line is one" count dense 1000
check "numbers that mean something stay" [ "$(grep -c 'Xid (PCI:.*): 79, pid=' dense)" = \
    "$(wc -l <dense)" ]
check "others vary" [ "$(grep -o 'pid=[0-9]*' dense | sort -u | wc -l)" -gt 100 ]

mkdir tmp
check "a round of all" env TMPDIR="$dir/tmp" top_builddir="$flow_build" \
    "$python" -B "$bench/bench.py" --smoke --json
mv check.out bench.json
query_bench() {
	"$python" "$flow_src/tests/flow/query.py" bench.json "$1"
}
check "each row has a number, or says why not" query_bench \
    "len(d['rows']) > 40 and all(r['median'] is not None or r['note'] for r in d['rows'])"
check "all that is here took time" query_bench \
    "all(r['median'] > 0 for r in d['rows'] if isinstance(r['median'], float)
    and r['unit'] != 'ms')"
check "no number is judged" query_bench "all(r['met'] is None for r in d['rows'])"
check "a healthy log is called healthy" query_bench \
    "[r['median'] for r in d['rows'] if 'healthy' in r['what']] == ['no_error']"
# what PyTorch is needed for has a number
saves() {
	query_bench "all(r['median'] is not None and r['median'] > 0 and not r['note']
	    for r in d['rows'] if r['section'].startswith(('Saving', 'Checkpoint', '1000 f'))
	    and r['what'] != 'tmpfs, until durable')"
}
# median SECTION ROW
median() {
	echo "[r['median'] for r in d['rows'] if r['section'].startswith('$1')
	    and r['what'] == '$2'][0]"
}
check "checkpoints have their rows" query_bench \
    "[sum(r['section'].startswith(s) for r in d['rows']) for s in
    ('Checkpoint of 40 MB', '1000 files', 'Saving 5 MB')] == [4, 2, 15]"
if have_torch; then
	check "... with numbers" saves
	check "a store is as slow as it should be" query_bench \
	    "$(median Saving 'direct, stall') >= 0.045"
	check "nothing is durable before it is saved" query_bench "all(a >= b for a, b in (
	    ($(median Saving 'staged, until durable'), 0.03),
	    (1000 * $(median Saving 'snapshot, until durable'),
	    $(median Saving 'snapshot, stall'))))"
else
	check "... without PyTorch no number" query_bench \
	    "$(median Saving 'direct, stall') is None"
fi
"$python" -B "$bench/bench_table.py" bench.json >table
check "the table says what was asked for" grep -q 'mmap and touch, avx2 .*>= 0.45' table
check "... of checkpoints too" grep -q 'stall shorter than direct  .*>= 58.7' table
check "nothing is left" [ -z "$(ls tmp)" ]
flow_end
