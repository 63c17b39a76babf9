#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# loss.sh - a loss that rises for good takes the run back to before it rose, and the
# trainer past the data; where that does not help, the run stops and says so.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"

saver=$flow_src/tests/flow/fake-saver
opts=(--tee none --nproc-per-node 1 --backoff 10ms --failure-grace 300ms --loss-spike 2/4)
# The agent tells progress five times a second: a step each time.
export SAVER_PACE=0.21 SAVER_STEPS=60 SAVER_EVERY=5 SAVER_KIND=0 SAVER_KIB=4

mkdir spike.d ever.d off.d short.d early.d
SAVER_POISON=43:46 run 0 spike "${opts[@]}" --checkpoint-dir spike.d -- "$saver" &
# No data is better than another: each attempt meets it again.
SAVER_STEPS=300 SAVER_POISON=43:9999 run 1 for-ever "${opts[@]}" --checkpoint-dir ever.d -- \
    "$saver" &
SAVER_POISON=43:50 run 0 off "${opts[@]}" --loss-spike 0 --checkpoint-dir off.d -- "$saver" &
SAVER_POISON=43:45 run 0 short "${opts[@]}" --checkpoint-dir short.d -- "$saver" &
# The only checkpoint is younger than the spike.
SAVER_EVERY=45 SAVER_POISON=43:60 run 1 early "${opts[@]}" --checkpoint-dir early.d -- "$saver" &
wait

check "early: stopped, and says why" grep -q 'no valid checkpoint is older than step 43' early.out
check "early: nothing was started from nothing" journal early "len(of('attempt')) == 1"
check "spike: seen" journal spike "[r['sign'] for r in of('incident')] == ['loss_spike']"
check "spike: the verdict" verdict spike \
    "d['reason'] == 'loss_spike' and 41 <= d['step'] <= 45"
check "spike: back to before it" journal spike "of('attempt')[1]['resume']['step'] == 40"
check "spike: the data were passed over" grep -q 'skipping data 41 to' "$(rank_log spike 2 0)"
check "spike: no high loss again" bash -c "! grep -q 'loss 30' '$(rank_log spike 2 0)'"
check "spike: ended well" journal spike "len(of('attempt')) == 2 and of('end')[0]['code'] == 0"
check "for-ever: stopped" journal for-ever "of('end')[0]['code'] == 1"
check "for-ever: says why" grep -q 'loss_spike' for-ever.out
check "for-ever: not without end" journal for-ever "len(of('attempt')) <= 4"
check "off: nothing was done" journal off "len(of('attempt')) == 1 and not of('incident')"
check "short: nothing was done" journal short "len(of('attempt')) == 1 and not of('incident')"
check "refused" grep -q 'takes FACTOR' <("$holdfast" run --loss-spike x -- true 2>&1)
check "nothing is left" nothing_left
flow_end
