#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# native.sh - four native ranks: environment, files, exit status, journal, campaigns.
# shellcheck source=tests/flow/lib.sh
. "$(dirname "$0")/lib.sh"

export SECRET_TOKEN=never-to-be-written
run 0 four --nproc-per-node 4 --tee none -- "$fake"
for r in 0 1 2 3; do
	check "rank $r has a log of its own" \
	    grep -q "^rank $r attempt 1 .* of 4" "$(rank_log four 1 "$r")"
done
check "status is finished" query four status.json "d['state'] == 'finished'"
check "status names run and attempt" \
    query four status.json "d['name'] == 'four' and d['attempt'] == 1"
check "holdfast status --json says the same" bash -c \
    "'$holdfast' status --json four | $python -c '
import json, sys
d = json.load(sys.stdin)
assert d[\"state\"] == \"finished\" and d[\"attempt\"] == 1, d'"
check "journal is complete" journal_complete four
check "journal tells how it ended" journal four "j[-1]['code'] == 0"
check "the run directory is private" [ "$(stat -c %a state/four)" = 700 ]
check "the environment is written nowhere" \
    bash -c "! grep -r never-to-be-written state --exclude='*.log'"
check "nothing is left" nothing_left

# The environment that torchrun gives, and no terminal.
run 0 env --nproc-per-node 2 -- bash -c 'env; readlink /proc/self/fd/0'
log=$(rank_log env 1 1)
for line in RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 GROUP_RANK=0 \
    GROUP_WORLD_SIZE=1 ROLE_RANK=1 ROLE_WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=0 \
    TORCHELASTIC_USE_AGENT_STORE=False OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 \
    HOLDFAST_ATTEMPT=1 "HOLDFAST_RUN_DIR=$dir/state/env" /dev/null; do
	check "rank 1 has $line" grep -qx "$line" "$log"
done
for name in MASTER_ADDR MASTER_PORT TORCHELASTIC_MAX_RESTARTS TORCHELASTIC_RUN_ID \
    HOLDFAST_RUN_ID; do
	check "rank 1 has $name" grep -q "^$name=." "$log"
done
check "without a checkpoint there is nothing to resume" \
    bash -c "! grep '^HOLDFAST_RESUME' '$log'"

# What a user set is kept.
OMP_NUM_THREADS=3 run 0 omp --nproc-per-node 1 -- bash -c 'echo OMP $OMP_NUM_THREADS'
check "OMP_NUM_THREADS of the user is kept" grep -qx 'OMP 3' "$(rank_log omp 1 0)"

# --tee
run 0 all --nproc-per-node 3 --tee all -- "$fake"
check "--tee all shows every rank" \
    bash -c "for r in 0 1 2; do grep -q \"rank \$r done\" all.out || exit 1; done"
run 0 one --nproc-per-node 3 --tee 1 -- "$fake"
check "--tee 1 shows rank 1 alone" \
    bash -c "grep -q 'rank 1 done' one.out && ! grep -q 'rank [02] done' one.out"
check "--tee none shows no rank" bash -c "! grep -q 'rank . done' four.out"

# Again by hand: a new campaign; attempt numbers go on unless --fresh.
run 0 four --nproc-per-node 4 -- "$fake"
check "the second start is attempt 2" query four status.json "d['attempt'] == 2"
check "the log of attempt 1 is kept" [ -s "$(rank_log four 1 0)" ]
check "attempt 2 has its own" [ -s "$(rank_log four 2 0)" ]
run 0 four --fresh --nproc-per-node 4 -- "$fake"
check "--fresh starts at attempt 1" query four status.json "d['attempt'] == 1"
check "and forgets the rest" [ ! -e "$(rank_log four 2 0)" ]

# --log-dir, journal on the terminal, --dry-run
run 0 logs --nproc-per-node 1 --log-dir "$dir/elsewhere" -- "$fake"
check "--log-dir holds the output" \
    bash -c "grep -rq 'rank 0 done' '$dir/elsewhere'"
run 0 json --json --tee none --nproc-per-node 1 -- "$fake"
check "--json prints the journal's records" bash -c \
    "$python -c 'import json, sys; [json.loads(l) for l in open(\"json.out\")]'"
run 0 dry -n --nproc-per-node 1 -- "$fake"
check "--dry-run starts nothing" [ ! -e "$(rank_log dry 1 0)" ]

# The first rank ended well, another does not end: a hang in shutdown.
FAKE_FAULT=hang:1:2 run 3 slow --nproc-per-node 2 --exit-timeout 500ms \
    --failure-grace 500ms --max-restarts 0 -- "$fake"
check "a rank that stays is a hang" verdict slow "d['reason'] == 'hang'"
check "nothing is left at the end" nothing_left
flow_end
