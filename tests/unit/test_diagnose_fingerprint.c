/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_fingerprint.c - the same failure has the same print again, another
 * one has another; with the shipped rules.
 */
#include <stdio.h>
#include <string.h>

#include "diagnose/causes.h"
#include "diagnose/fingerprint.h"
#include "rule_fixture.h"
#include "unit.h"

static struct rule_set *set;

static void
set_up(void)
{
	set = rule_fixture_shipped();
}

static void
tear_down(void)
{
	rule_set_free(set);
}

static void
print_of(const char *log, char out[FINGERPRINT_SIZE])
{
	struct feed feed = {0};
	struct verdict v = {0};
	struct err err = {0};

	ck_assert_int_eq(feed_add_memory(&feed, "t", log, strlen(log), &err), 0);
	ck_assert_int_eq(causes_find(set, &feed, &v, &err), 0);
	ck_assert_msg(v.fingerprint[0] != '\0', "no print: %s", log);
	memcpy(out, v.fingerprint, FINGERPRINT_SIZE);
	verdict_fini(&v);
	feed_fini(&feed);
}

#define AT(file, line, function) \
	"Traceback (most recent call last):\n  File \"" file "\", line " line \
	", in " function "\n    step()\n"

/* One failure, the same in another run, and another failure. */
static const char *const rows[][3] = {
	{ AT("/w/t.py", "3", "main") "KeyError: 'a'\n",
	  "2026-01-31 03:12:41 [rank3]: noise\n" AT("/x/t.py", "7", "main")
	  "KeyError: 'a'\n",
	  AT("/w/t.py", "3", "main") "KeyError: 'b'\n" },
	{ AT("/w/t.py", "3", "load") "IndexError: list index out of range\n",
	  AT("/home/n1/t.py", "9", "load") "IndexError: list index out of range\n",
	  AT("/w/t.py", "3", "save") "IndexError: list index out of range\n" },
	{ AT("/w/t.py", "3", "main") "AssertionError\n",
	  "[rank1]: " AT("/w/t.py", "4", "main") "AssertionError\n",
	  AT("/w/other.py", "3", "main") "AssertionError\n" },
	{ "FileNotFoundError: [Errno 2] No such file or directory: "
	  "'/data/run17/train.bin'\n",
	  "FileNotFoundError: [Errno 2] No such file or directory: "
	  "'/data/run18/train.bin'\n",
	  "FileNotFoundError: [Errno 2] No such file or directory: "
	  "'/data/run17/valid.bin'\n" },
	{ "OSError: [Errno 28] No space left on device: '/tmp/tmpab12cd/x.pt'\n",
	  "OSError: [Errno 28] No space left on device: '/tmp/tmpzz98yx/y.pt'\n",
	  "OSError: [Errno 122] Disk quota exceeded: '/tmp/tmpab12cd/x.pt'\n" },
	{ "[1.0] NVRM: Xid (PCI:0000:3b:00): 79, pid=12, name=python3, GPU has fallen "
	  "off the bus.\n",
	  "[9.5] NVRM: Xid (PCI:0000:9a:00): 79, pid=4711, name=pt_main, GPU has fallen "
	  "off the bus.\n",
	  "[1.0] NVRM: Xid (PCI:0000:3b:00): 48, pid=12, name=python3, An uncorrectable "
	  "double bit error\n" },
	{ "[1.0] NVRM: Xid (PCI:0000:3b:00): 109, pid=12, name=python3, Ch 00000008\n",
	  "[8.0] NVRM: Xid (PCI:0000:3c:00): 109, pid=13, name=python3, Ch 00000010\n",
	  "[1.0] NVRM: Xid (PCI:0000:3b:00): 119, pid=12, name=python3, Timeout after "
	  "45s of waiting for RPC response from GPU0 GSP!\n" },
	{ "RuntimeError: Error(s) in loading state_dict for Net: size mismatch for "
	  "layers.3.weight: copying a param with shape torch.Size([4, 8])\n",
	  "RuntimeError: Error(s) in loading state_dict for Net: size mismatch for "
	  "layers.5.weight: copying a param with shape torch.Size([16, 8, 2])\n",
	  "RuntimeError: Error(s) in loading state_dict for Net: size mismatch for "
	  "head.bias: copying a param with shape torch.Size([4, 8])\n" },
	{ "RuntimeError: The size of tensor a (128) must match the size of tensor b "
	  "(64) at non-singleton dimension 1\n",
	  "RuntimeError: The size of tensor a (99) must match the size of tensor b "
	  "(31) at non-singleton dimension 2\n",
	  "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x4 and 5x6)\n" },
	{ "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 "
	  "has a total capacity of 79.35 GiB of which 1.2 GiB is free.\n",
	  "[rank7]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate "
	  "512.00 MiB. GPU 7 has a total capacity of 39.39 GiB of which 44 MiB is free. "
	  "Process 99 has 2 GiB memory in use.\n",
	  "RuntimeError: CUDA error: an illegal memory access was encountered\n" },
	{ "ModuleNotFoundError: No module named 'apex'\n",
	  "[rank5]: ModuleNotFoundError: No module named 'apex'\n",
	  "ModuleNotFoundError: No module named 'flash_attn'\n" },
	{ "ImportError: libcudart.so.11.0: cannot open shared object file: No such file "
	  "or directory\n",
	  "2026-01-31 03:12:41 - ERROR - ImportError: libcudart.so.11.0: cannot open "
	  "shared object file: No such file or directory\n",
	  "ImportError: libnvrtc.so.11.0: cannot open shared object file: No such file "
	  "or directory\n" },
	{ "TypeError: main() got an unexpected keyword argument 'lr'\n",
	  "(Worker pid=31, ip=10.0.0.7) TypeError: main() got an unexpected keyword "
	  "argument 'lr'\n",
	  "TypeError: main() got an unexpected keyword argument 'wd'\n" },
	{ "AttributeError: 'NoneType' object has no attribute 'shape'\n",
	  "node7: AttributeError: 'NoneType' object has no attribute 'shape'\n",
	  "AttributeError: 'NoneType' object has no attribute 'dtype'\n" },
	{ "[rank0]:[E131 03:12:41.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught "
	  "collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, "
	  "Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n",
	  "[rank5]:[E201 13:12:41.1 ProcessGroupNCCL.cpp:632] [Rank 5] Watchdog caught "
	  "collective operation timeout: WorkNCCL(SeqNum=98, OpType=ALLREDUCE, "
	  "Timeout(ms)=1800000) ran for 1800021 milliseconds before timing out.\n",
	  "n1:81:90 [0] misc/socket.cc:4 NCCL WARN Call to connect to 10.0.0.9<1> failed "
	  ": No route to host\n" },
	{ "n1:81:90 [0] transport/net_ib.cc:9 NCCL WARN NET/IB : Got completion from "
	  "peer 10.0.0.7<4123> with status=12 opcode=0 len=0 vendor err 129\n",
	  "n12:7:9 [3] transport/net_ib.cc:8 NCCL WARN NET/IB : Got completion from peer "
	  "10.0.0.99<51> with status=12 opcode=2 len=7 vendor err 129\n",
	  "n1:81:90 [0] transport/net_ib.cc:9 NCCL WARN NET/IB : Got completion from "
	  "peer 10.0.0.7<4123> with status=4 opcode=0 len=0 vendor err 81\n" },
	{ "PermissionError: [Errno 13] Permission denied: '/out/a1/logs'\n",
	  "PermissionError: [Errno 13] Permission denied: '/out/a2/logs'\n",
	  "PermissionError: [Errno 13] Permission denied: '/out/a1/cache'\n" },
	{ "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-31T03:12:41 DUE TO "
	  "TIME LIMIT ***\n",
	  "slurmstepd: error: *** STEP 99.0 ON n8 CANCELLED AT 2026-02-01T13:12:41 DUE "
	  "TO TIME LIMIT ***\n",
	  "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-31T03:12:41 DUE TO "
	  "PREEMPTION ***\n" },
	{ "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) "
	  "local_rank: 0 (pid: 4711) of binary: /usr/bin/python3\n",
	  "  exitcode  : -9 (pid: 99)\n",
	  "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -11) "
	  "local_rank: 0 (pid: 4711) of binary: /usr/bin/python3\n" },
	{ "ValueError: Expected input batch_size (32) to match target batch_size (31).\n",
	  "[rank2]: ValueError: Expected input batch_size (8) to match target batch_size "
	  "(7).\n",
	  "ValueError: num_samples should be a positive integer value, but got "
	  "num_samples=0\n" },
	{ "ZeroDivisionError: float division by zero\n",
	  "[rank2]: ZeroDivisionError: float division by zero\n",
	  "ZeroDivisionError: integer division or modulo by zero\n" },
	{ AT("/w/t.py", "3", "main") "my.pkg.OddFailure: shard 17 of 0x7f3a21b0c010 at "
	  "2026-01-31 03:12:41\n",
	  AT("/w/t.py", "5", "main") "my.pkg.OddFailure: shard 4 of 0x55d0e0aa21f0 at "
	  "2026-02-01 13:52:01\n",
	  AT("/w/t.py", "3", "main") "my.pkg.OtherFailure: shard 17 of 0x7f3a21b0c010 at "
	  "2026-01-31 03:12:41\n" },
};

START_TEST(same_again_and_another)
{
	char print[3][FINGERPRINT_SIZE];
	int i;

	for (i = 0; i < 3; i++)
		print_of(rows[_i][i], print[i]);
	ck_assert_msg(strcmp(print[0], print[1]) == 0, "row %d: differs", _i);
	ck_assert_msg(strcmp(print[0], print[2]) != 0, "row %d: does not differ",
	    _i);
}
END_TEST

/* All the failures above are different ones. */
START_TEST(no_two_are_alike)
{
	char print[sizeof(rows) / sizeof(rows[0])][FINGERPRINT_SIZE];
	size_t i, k;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_of(rows[i][0], print[i]);
		for (k = 0; k < i; k++)
			ck_assert_msg(strcmp(print[i], print[k]) != 0,
			    "rows %zu and %zu", i, k);
	}
}
END_TEST

static const char *const words_rows[][2] = {
	{ "loss 1.25e-03 at step 18,250", "loss # at step #" },
	{ "at 2026-01-31 03:12:41.123", "at #" },
	{ "to 10.0.0.7:29500 from [4, 8, 16]", "to # from [#]" },
	{ "0x7f3a21b0c010 deadbeef01", "# #" },
	{ "'/a/b/c/d12/model.pt'", "'/d#/model.pt'" },
	{ "'/tmp/tmpx1y2/model.pt' gone", "'/~' gone" },
	{ "2.00 GiB of 80 GiB, 512.00 MiB free", "# of #, # free" },
	{ "layers.17.weight", "layers.#.weight" },
	{ "", "" },
};

START_TEST(words_of_messages)
{
	char out[100];
	size_t n = fingerprint_words(words_rows[_i][0],
	    strlen(words_rows[_i][0]), out, sizeof(out) - 1);

	out[n] = '\0';
	ck_assert_str_eq(out, words_rows[_i][1]);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, same_again_and_another, 0,
	    (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_test(t, no_two_are_alike);
	tcase_add_loop_test(t, words_of_messages, 0,
	    (int)(sizeof(words_rows) / sizeof(words_rows[0])));
}

int
main(void)
{
	return unit_run("diagnose/fingerprint", add);
}
