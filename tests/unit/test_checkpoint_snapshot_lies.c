/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_snapshot_lies.c - clients that do not keep to the protocol, against
 * a server that others use.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "checkpoint/snapshot_wire.h"
#include "snapshot_fixture.h"
#include "unit.h"

static int
raw_connect(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", snapshot_socket);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

/* Begins on a connection of its own, and gets the area. */
static int
raw_begin(int *area_fd, struct snapshot_message *m)
{
	int fd = raw_connect();

	*m = (struct snapshot_message){ .type = SNAPSHOT_BEGIN, .step = 1,
	    .world = 1, .bytes = MB };
	ck_assert_int_eq(snapshot_send(fd, m, -1), 0);
	*area_fd = -1;
	while (snapshot_receive(fd, m, area_fd) == 1 && !m->begun)
		if (*area_fd != -1)
			break;
	if (!m->begun) {
		int again;

		ck_assert_int_eq(snapshot_receive(fd, m, &again), 1);
	}
	ck_assert_uint_eq(m->begun, 1);
	ck_assert_int_ne(*area_fd, -1);
	return fd;
}

static bool
is_hung_up(int fd)
{
	struct snapshot_message m;
	int passed, rc;

	while ((rc = snapshot_receive(fd, &m, &passed)) == 1)
		if (passed != -1)
			close(passed);
	close(fd);
	return rc == 0 || errno == ECONNRESET;
}

/* A client that lies is cut off, or its snapshot fails; others do not notice. */
START_TEST(test_lies)
{
	pid_t pid = snapshot_start(0, RLIM_INFINITY);
	struct holdfast_checkpoint_client *c = snapshot_open();
	static const struct snapshot_message lies[] = {
		{ .type = 0 }, { .type = 99 }, { .type = SNAPSHOT_AREA },
		{ .type = SNAPSHOT_BEGIN, .world = 0 },
		{ .type = SNAPSHOT_BEGIN, .world = 1, .rank = 1 },
		{ .type = SNAPSHOT_BEGIN, .world = 1, .step = -1 },
		{ .type = SNAPSHOT_BEGIN, .world = 1, .bytes = UINT64_MAX },
		{ .type = SNAPSHOT_BEGIN, .world = 1, .separator = 200 },
		{ .type = SNAPSHOT_RESERVE, .area = 2 },
		{ .type = SNAPSHOT_GROW, .bytes = 1 }, { .type = SNAPSHOT_ADOPT },
		{ .type = SNAPSHOT_COMMIT, .world = 1 }
	};
	struct snapshot_message m;
	struct snapshot_head head = { .kind = TORCH_TENSOR, .dtype = 2, .ndim = 0,
	    .bytes = 4 };
	int fd, area, passed;
	size_t i;

	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		fd = raw_connect();
		m = lies[i];
		ck_assert_int_eq(snapshot_send(fd, &m, -1), 0);
		ck_assert_msg(is_hung_up(fd), "lie %zu", i);
	}
	/* no message at all; memory that can shrink; no memory */
	fd = raw_connect();
	ck_assert_int_eq(send(fd, "x", 1, MSG_NOSIGNAL), 1);
	ck_assert(is_hung_up(fd));
	for (i = 0; i < 2; i++) {
		fd = raw_connect();
		area = i == 0 ? memfd_create("x", 0) : open("/dev/null", O_RDWR);
		m = (struct snapshot_message){ .type = SNAPSHOT_ADOPT };
		ck_assert_int_eq(snapshot_send(fd, &m, area), 0);
		ck_assert(is_hung_up(fd));
		close(area);
	}
	/* the area cannot be cut under the server */
	fd = raw_begin(&area, &m);
	ck_assert_int_eq(ftruncate(area, 0), -1);
	/* a table outside of it */
	m.type = SNAPSHOT_COMMIT;
	m.world = 1;
	m.table_offset = m.bytes;
	m.table_bytes = 8;
	ck_assert_int_eq(snapshot_send(fd, &m, -1), 0);
	ck_assert(is_hung_up(fd));
	close(area);
	/* tables of random bytes, and a tensor that reaches outside */
	for (i = 0; i < 50; i++) {
		unsigned char junk[256];
		size_t k;

		fd = raw_begin(&area, &m);
		for (k = 0; k < sizeof(junk); k++)
			junk[k] = (unsigned char)(unit_random(4) ?
			    unit_random(8) : unit_random(256));
		head.offset = m.bytes - 3;
		if (i == 0)
			memcpy(junk, &head, sizeof(head));
		ck_assert_int_eq(pwrite(area, junk, sizeof(junk), 0), sizeof(junk));
		m = (struct snapshot_message){ .type = SNAPSHOT_COMMIT, .world = 1,
		    .area = m.area, .step = 1, .entries = 1 + (uint32_t)i % 3,
		    .table_bytes = sizeof(junk), .sequence = 5 };
		ck_assert_int_eq(snapshot_send(fd, &m, -1), 0);
		do
			ck_assert_int_eq(snapshot_receive(fd, &m, &passed), 1);
		while (m.type != SNAPSHOT_DONE);
		ck_assert_uint_eq(m.sequence, 5);
		if (i == 0)
			ck_assert_int_eq(m.code, HOLDFAST_CHECKPOINT_FAILED);
		close(area);
		close(fd);
	}
	snapshot_save(c, 2, 0, 1, 1);
	OK(holdfast_checkpoint_wait(c, -1, WHY));
	holdfast_checkpoint_close(c);
	snapshot_stop(pid);
	snapshot_is_valid("step00000002.pt", 2);
}
END_TEST

static void
add(TCase *c)
{
	tcase_add_checked_fixture(c, snapshot_set_up, NULL);
	tcase_add_test(c, test_lies);
	tcase_set_timeout(c, 120);
}

int
main(void)
{
	return unit_run("checkpoint_snapshot_lies", add);
}
