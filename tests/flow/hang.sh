#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hang.sh - attempts that stop making progress are found, with the rank that differs, and
# those that are merely silent are left alone.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"

peers=$flow_src/tests/flow/fake-peers
opts=(--tee none --nproc-per-node 3 --backoff 10ms --failure-grace 300ms --hang-timeout 6s
    --busy-timeout 15s --start-timeout 15s)

# hung NAME RANK WORDS...: NAME had a hang in its first attempt, RANK is named with these
# words, and the second attempt ended well
hung() {
	local name=$1 rank=$2
	check "$name: a hang" journal "$name" \
	    "[r['sign'] for r in of('incident')] == ['hang']"
	check "$name: the rank" journal "$name" "of('incident')[0]['rank'] == $rank"
	check "$name: what differs" journal "$name" "'$3' in of('incident')[0]['text']"
	check "$name: the verdict" verdict "$name" \
	    "d['reason'] == 'hang' and d['root']['rank'] == $rank"
	check "$name: suspected before" journal "$name" "of('suspicion')
	    and of('suspicion')[0]['seq'] < of('evidence')[0]['seq']"
	check "$name: evidence of all ranks" \
	    [ "$(cat "state/$name"/evidence/0001/rank0000[012].txt | grep -c '^waits in')" = 3 ]
	check "$name: two attempts" journal "$name" "len(of('attempt')) == 2"
}
# calm NAME: one attempt, and nobody was alarmed
calm() {
	check "$1: one attempt" journal "$1" "len(of('attempt')) == 1"
	check "$1: no alarm" journal "$1" "not of('incident')"
}
# go STATUS NAME ARGUMENT...: one run
go() {
	local status=$1 name=$2
	shift 2
	mkdir "$name.d"
	PEERS_DIR=$dir/$name.d run "$status" "$name" "${opts[@]}" "$@" "$peers"
}

# Several at a time: most of it is waiting.
PEERS_FAULT=stop:1:12 go 0 stop -- >stop.log 2>&1 &
PEERS_FAULT=hang:2:12 PEERS_CHATTER=1 go 0 sleep -- >sleep.log 2>&1 &
PEERS_FAULT=spin:1:12 go 0 spin -- >spin.log 2>&1 &
PEERS_FAULT=evaluate:0:12 PEERS_SILENCE=10 go 0 evaluate -- >evaluate.log 2>&1 &
PEERS_FAULT=write:0:12 PEERS_SILENCE=10 go 0 write -- >write.log 2>&1 &
PEERS_FAULT=silent:0:12 PEERS_SILENCE=6 go 0 never --hang-timeout 0 -- >never.log 2>&1 &
PEERS_PACE=2 PEERS_STEPS=4 go 0 slow -- >slow.log 2>&1 &
PEERS_FAULT=stop:1:1 go 0 start -- >start.log 2>&1 &
# Those have check() results of their own, which are counted here.
wait
for log in stop sleep spin evaluate write never slow start; do
	check "$log: ran as expected" grep -q "^ok - $log: exit status 0" "$log.log"
done

hung stop 1 'stopped by a signal'
hung sleep 2 'differs'
hung spin 1 'differs: '
hung start 1 'stopped by a signal'
calm evaluate
calm write
calm never
calm slow
check "stop: status has no suspicion at the end" query stop status.json "d['suspicion'] is None"
check "nothing is left" nothing_left

# Around torchrun the ranks are found by their environment.
if have_torch; then
	patience=180
	HOLDFAST_FAULT=stop:1:14 run 0 torchrun --tee none --backoff 10ms --failure-grace 1s \
	    --hang-timeout 6s --checkpoint-dir torchrun.d -- "$flow_src/examples/torchrun" \
	    --nproc_per_node 3 "$train" --steps 18 --save-every 4 --step-time 0.2 --timeout 600
	check "torchrun: a hang" journal torchrun \
	    "[r['sign'] for r in of('incident')] == ['hang']"
	check "torchrun: the rank" journal torchrun "of('incident')[0]['rank'] == 1"
	check "torchrun: nothing is left" nothing_left
fi
flow_end
