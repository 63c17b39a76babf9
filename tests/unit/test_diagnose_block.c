/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_block.c - tracebacks and dumps in all the forms in which they are
 * printed; with the shipped rules.
 */
#include <stdio.h>
#include <string.h>

#include "diagnose/block.h"
#include "diagnose/causes.h"
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

struct row {
	const char	*log;
	const char	*reason;
	long long	 line;		/* of the root, -1 none */
};

#define TB	"Traceback (most recent call last):\n" \
		"  File \"/w/t.py\", line 3, in main\n    go()\n"

static const struct row rows[] = {
	/* members of an exception group: the first, not the group */
	{ "  + Exception Group Traceback (most recent call last):\n"
	  "  |   File \"/w/t.py\", line 3, in main\n"
	  "  |     async with asyncio.TaskGroup() as tg:\n"
	  "  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-excepti"
	  "ons)\n" "  +-+---------------- 1 ----------------\n"
	  "    | Traceback (most recent call last):\n"
	  "    |   File \"/w/t.py\", line 7, in a\n"
	  "    |     raise KeyError('a')\n" "    | KeyError: 'a'\n"
	  "    +---------------- 2 ----------------\n"
	  "    | Traceback (most recent call last):\n"
	  "    |   File \"/w/t.py\", line 9, in b\n" "    | RuntimeError: x\n"
	  "    +------------\n", "key_error", 9 },
	{ "[rank3]:   + Exception Group Traceback (most recent call last):\n"
	  "[rank3]:   |   File \"/w/t.py\", line 3, in main\n"
	  "[rank3]:   |     async with asyncio.TaskGroup() as tg:\n"
	  "[rank3]:   | ExceptionGroup: unhandled errors in a TaskGroup (2 su"
	  "b-exceptions)\n" "[rank3]:   +-+---------------- 1 ----------------\n"
	  "[rank3]:     | Traceback (most recent call last):\n"
	  "[rank3]:     |   File \"/w/t.py\", line 7, in a\n"
	  "[rank3]:     |     raise KeyError('a')\n"
	  "[rank3]:     | KeyError: 'a'\n"
	  "[rank3]:     +---------------- 2 ----------------\n"
	  "[rank3]:     | Traceback (most recent call last):\n"
	  "[rank3]:     |   File \"/w/t.py\", line 9, in b\n"
	  "[rank3]:     | RuntimeError: x\n" "[rank3]:     +------------\n",
	  "key_error", 9 },
	/* ... also when no rule knows it */
	{ "  + Exception Group Traceback (most recent call last):\n"
	  "  |   File \"/w/t.py\", line 3, in main\n"
	  "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-excepti"
	  "on)\n" "  +-+---------------- 1 ----------------\n"
	  "    | Traceback (most recent call last):\n"
	  "    |   File \"/w/t.py\", line 7, in a\n"
	  "    | my.pkg.OddFailure: text\n" "    +------------\n", "runtime_error", 7 },
	/* a note behind the message */
	{ TB "KeyError: 'a'\n" "while reading shard 3\n", "key_error", 4 },
	/* source and caret */
	{ "  File \"/w/t.py\", line 3\n" "    print \"x\"\n" "          ^\n"
	  "SyntaxError: invalid syntax\n", "syntax_error", 4 },
	/* loguru's frames and values */
	{ "2026-01-31 03:12:41.215 | ERROR    | __main__:main:12 - An error h"
	  "as been caught in function 'main', process 'MainProcess' (81), thr"
	  "ead 'MainThread' (1):\n" "Traceback (most recent call last):\n" "\n"
	  "> File \"/w/t.py\", line 3, in <module>\n" "    main()\n"
	  "    \xe2\x94\x94 <function main at 0x7f>\n" "\n"
	  "  File \"/w/t.py\", line 9, in main\n" "    d['a']\n"
	  "    \xe2\x94\x94 {}\n" "\n" "KeyError: 'a'\n", "key_error", 12 },
	{ "2026-01-31 03:12:41.215 | ERROR    | __main__:main:12 - An error h"
	  "as been caught in function 'main', process 'MainProcess' (81), thr"
	  "ead 'MainThread' (1):\n" "Traceback (most recent call last):\n" "\n"
	  "> File \"/w/t.py\", line 3, in <module>\n" "    main()\n"
	  "    \xe2\x94\x94 <function main at 0x7f>\n" "\n"
	  "  File \"/w/t.py\", line 9, in main\n" "    d['a']\n"
	  "    \xe2\x94\x94 {}\n" "\n" "my.pkg.OddFailure: x\n", "runtime_error", 12 },
	/* rich's boxes */
	{ "\xe2\x95\xad\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80 Traceback (most r"
	  "ecent call last) \xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x95\xae" "\n"
	  "\xe2\x94\x82 /w/t.py:3 in main   \xe2\x94\x82\n"
	  "\xe2\x94\x82   \xe2\x94\x82\n"
	  "\xe2\x94\x82   1 \xe2\x94\x82 d = {}   \xe2\x94\x82\n"
	  "\xe2\x95\xb0\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x95\xaf\n"
	  "KeyError: 'a'\n", "key_error", 6 },
	{ "\xe2\x95\xad\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80 Traceback (most r"
	  "ecent call last) \xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x95\xae" "\n"
	  "\xe2\x94\x82 /w/t.py:3 in main   \xe2\x94\x82\n"
	  "\xe2\x94\x82   \xe2\x94\x82\n"
	  "\xe2\x94\x82   1 \xe2\x94\x82 d = {}   \xe2\x94\x82\n"
	  "\xe2\x95\xb0\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x95\xaf\n"
	  "OddFailure: x\n", "runtime_error", 6 },
	{ "+------------ Traceback (most recent call last) ------------+\n"
	  "| /w/t.py:3 in main   |\n" "|   1 | d = {}   |\n" "+------------+\n"
	  "OddFailure: x\n", "runtime_error", 5 },
	/* IPython */
	{ "------------\n"
	  "KeyError                                  Traceback (most recent c"
	  "all last)\n" "Cell In[3], line 1\n" "----> 1 d['a']\n" "\n"
	  "KeyError: 'a'\n", "key_error", 6 },
	{ "------------\n"
	  "OddFailure                                Traceback (most recent c"
	  "all last)\n" "Cell In[3], line 1\n" "----> 1 foo()\n" "\n"
	  "File ~/w/t.py:12, in foo()\n" "     12 raise OddFailure('x')\n"
	  "OddFailure: x\n", "runtime_error", 8 },
	/* C++: what() tells it */
	{ "terminate called after throwing an instance of 'c10::Error'\n"
	  "  what():  CUDA error: an illegal memory access was encountered\n"
	  "CUDA kernel errors might be asynchronously reported at some other "
	  "API call, so the stacktrace below might be incorrect.\n"
	  "Exception raised from c10_cuda_check_implementation at ../c10/cuda"
	  "/CUDAException.cpp:44 (most recent call first):\n"
	  "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x"
	  "57 (0x7f01 in /opt/libc10.so)\n"
	  "frame #1: <unknown function> + 0x22 (0x7f02 in /opt/libc10_cuda.so" ")\n",
	  "cuda_illegal_access", 2 },
	/* faulthandler's dump */
	{ "Fatal Python error: Segmentation fault\n" "\n"
	  "Current thread 0x00007f0001 (most recent call first):\n"
	  "  File \"/w/t.py\", line 3 in main\n"
	  "  File \"/w/t.py\", line 9 in <module>\n", "native_crash", 1 },
	/* chains: the first one */
	{ TB "FileNotFoundError: [Errno 2] No such file or directory: '/d/x'\n" "\n"
	  "The above exception was the direct cause of the following exceptio"
	  "n:\n" "\n" TB "RuntimeError: cannot load\n", "file_not_found", 4 },
	{ TB "KeyError: 'a'\n" "\n"
	  "During handling of the above exception, another exception occurred" ":\n"
	  "\n" TB "AttributeError: 'X' object has no attribute 'y'\n", "key_error", 4 },
	/* in a thread, in a task, in a worker process */
	{ "Exception in thread Thread-1 (f):\n" TB "KeyError: 'a'\n", "key_error", 5 },
	{ TB "KeyError: Caught KeyError in DataLoader worker process 0.\n"
	  "Original Traceback (most recent call last):\n"
	  "  File \"/w/t.py\", line 3, in main\n" "    go()\n" "KeyError: 'a'\n",
	  "key_error", 8 },
	{ "Task exception was never retrieved\n"
	  "future: <Task finished name='Task-2' coro=<f() done, defined at /w"
	  "/t.py:1> exception=KeyError('a')>\n" TB "KeyError: 'a'\n", "key_error", 6 },
	/* printed, not raised */
	{ "Exception ignored in: <function D.__del__ at 0x7f>\n" TB
	  "KeyError: 'a'\n" "step 1 done\n", "none", -1 },
	{ "Exception ignored in: <function D.__del__ at 0x7f>\n" TB
	  "KeyError: 'a'\n" TB "ValueError: b\n", "value_error", 9 },
	{ "--- Logging error ---\n" TB
	  "TypeError: not all arguments converted during string formatting\n"
	  "Call stack:\n" "  File \"/w/t.py\", line 3, in main\n" "Message: 'x'\n"
	  "Arguments: (1,)\n", "none", -1 },
	/* quoted */
	{ "******************************************************************"
	  "****\n" "File \"x.py\", line 3, in x\n" "Failed example:\n" "    f(1)\n"
	  "Expected:\n" "    Traceback (most recent call last):\n" "    ...\n"
	  "    ValueError: bad\n" "Got:\n" "    1\n", "none", -1 },
	{ "Raises an error:\n" "    >>> f(1)\n"
	  "    Traceback (most recent call last):\n" "        ...\n"
	  "    ValueError: bad\n" "all good\n", "none", -1 },
	{ "The mark \"Traceback (most recent call last)\" begins a traceback." "\n"
	  "Here it is: Traceback (most recent call last):\n" "text goes on\n",
	  "none", -1 },
	{ "tests/test_x.py::test_raises PASSED\n" "    def test_raises():\n"
	  ">       with pytest.raises(ValueError, match=\"Traceback (most rec"
	  "ent call last)\"):\n" "PASSED\n" "=== 3 passed in 0.2s ===\n", "none", -1 },
	/* a message of several lines */
	{ TB "RuntimeError: Error(s) in loading state_dict for Net:\n"
	  "	size mismatch for head.weight: copying a param with shape torch.S"
	  "ize([4, 8]) from checkpoint, the shape in current model is torch.S"
	  "ize([2, 8]).\n", "checkpoint_mismatch", 4 },
	/* the job went on */
	{ "WARNING:root:could not load the extension\n" TB "ImportError: no\n"
	  "step 1 loss 2.0\n" "step 2 loss 1.9\n" "step 3 loss 1.9\n", "none", -1 },
	/* an exception that torch.multiprocessing passes on */
	{ TB "Exception: \n\n-- Process 0 terminated with the following error:\n" TB
	  "KeyError: 'a'\n", "key_error", 10 },
	{ TB "Exception: \n\n-- Process 0 terminated with the following error:\n" TB
	  "my.pkg.OddFailure: x\n", "runtime_error", 10 },
	/* NCCL's way back: the innermost call lost a peer, so it is an echo */
	{ "n1:81:90 [1] misc/socket.cc:518 NCCL WARN Net : Connection closed by "
	  "remote peer n2<81>\nn1:81:90 [1] NCCL INFO misc/socket.cc:535 -> 6\n"
	  "n1:81:90 [1] NCCL INFO proxy.cc:991 -> 6\n\nn1:81:90 [1] proxy.cc:1119 NCCL "
	  "WARN [Proxy Service 9] Failed to execute operation Connect from rank 9, "
	  "retcode 6\n", "nccl_remote_error", 1 },
	/* who aborts comes before those who lose it */
	{ "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith "
	  "errorcode 5.\n\nNOTE: invoking MPI_ABORT causes Open MPI to kill all MPI "
	  "processes.\n"
	  "WARNING: Open MPI failed to TCP connect to a peer MPI process.  This\nshould "
	  "not happen.\n", "unknown", 1 },
	{ "[n2:00411] *** Process received signal ***\n[n2:00411] Signal: Segmentation "
	  "fault (11)\nmpirun noticed that process rank 1 with PID 411 on node n2 exited "
	  "on signal 11 (Segmentation fault).\n", "native_crash", 2 },
	/* a rank that waits for the store to the end, and one that goes on */
	{ "hello\n[W131 03:12:41.1 socket.cpp:752] [c10d] The client socket has failed "
	  "to connect to [n1]:29500 (errno: 111 - Connection refused).\n\nTerminated\n",
	  "rendezvous_timeout", 2 },
	{ "[W131 03:12:41.1 socket.cpp:752] [c10d] The client socket has failed to "
	  "connect to [n1]:29500 (errno: 111 - Connection refused).\na\nb\nc\nd\n",
	  "none", -1 },
	{ "[W131 03:12:41.1 socket.cpp:752] [c10d] The client socket has failed to "
	  "connect to [n1]:29500 (errno: 97 - Address family not supported).\n", "none",
	  -1 },
	/* the log ends with it */
	{ TB, "unknown", -1 },
};

START_TEST(forms)
{
	const struct row *row = &rows[_i];
	struct feed feed = {0};
	struct verdict v = {0};
	struct err err = {0};

	ck_assert_int_eq(feed_add_memory(&feed, "t", row->log, strlen(row->log),
	    &err), 0);
	ck_assert_int_eq(causes_find(set, &feed, &v, &err), 0);
	ck_assert_msg(strcmp(v.reason, row->reason) == 0, "%.60s: %s", row->log,
	    v.reason);
	ck_assert_msg((v.has_root ? v.root.line : -1) == row->line,
	    "row %d: line %lld", _i, (long long)v.root.line);
	verdict_fini(&v);
	feed_fini(&feed);
}
END_TEST

/* Events of any line and writer find the same with lines remembered from others, of
 * this stream and of another one, as with none; also where many short lines want the
 * same place in what is remembered. */
START_TEST(remembered)
{
	static const char *const texts[] = {
		"Traceback (most recent call last):", "  File \"/w/t.py\", line 3",
		"    go()", "KeyError: 'a'", "", "x", "Exception ignored in: f",
		"During handling of the above exception, another exception occurred:",
		"  File \"/w/checkpoint.py\", line 9, in save",
		"KeyError: Caught KeyError in DataLoader worker process 0."
	};
	const struct line_styles styles = {0};
	struct block_lines *seen = block_lines_new(), *fresh;
	struct block a, b;
	static char text[2][1 << 16];
	struct stream s[2] = {{0}};
	unsigned r = 1, i, k;
	size_t at, found = 0;
	struct line l;

	ck_assert_ptr_nonnull(seen);
	for (i = 0; i < 2; i++) {
		for (s[i].len = 0; s[i].len < sizeof(text[i]) - 200;) {
			r = r * 1103515245 + 12345;
			k = s[i].len < 9000 ? r >> 16 & 1 : r >> 20 & 1;
			s[i].len += (size_t)snprintf(text[i] + s[i].len, 200,
			    "%s%s\n", s[i].len < 9000 ? "" : k ? "[rank1]: " :
			    "[rank0]: ", texts[s[i].len < 9000 ? 4 + k :
			    (r >> 16) % 10]);
		}
		s[i].data = text[i];
	}
	for (i = 0; i < 4000; i++) {
		struct event e = { .stream = r >> 30 & 1 };

		r = r * 1103515245 + 12345;
		at = (r >> 8) % (s[e.stream].len - 200);
		at = (size_t)((char *)memchr(text[e.stream] + at, '\n', 200) + 1 -
		    text[e.stream]);
		line_parse(text[e.stream] + at, 12, &l);
		e.start = at;
		e.key = l.key;
		fresh = block_lines_new();
		ck_assert_ptr_nonnull(fresh);
		block_find(seen, &s[e.stream], &styles, &e, &a);
		block_find(fresh, &s[e.stream], &styles, &e, &b);
		block_lines_free(fresh);
		ck_assert_uint_eq(a.begin, b.begin);
		ck_assert_uint_eq(a.frame, b.frame);
		ck_assert_int_eq(a.depth, b.depth);
		ck_assert(a.traceback == b.traceback && a.ignored == b.ignored &&
		    a.saving == b.saving && a.loading == b.loading);
		found += a.traceback;
	}
	ck_assert_uint_gt(found, 100);
	block_lines_free(seen);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, remembered);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, forms, 0, (int)(sizeof(rows) / sizeof(rows[0])));
}

int
main(void)
{
	return unit_run("diagnose/block", add);
}
