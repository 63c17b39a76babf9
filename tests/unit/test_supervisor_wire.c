/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervisor_wire.c - frames over a socket pair.
 *
 * One end is a struct wire in the loop, the other the test's bare descriptor.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/json.h"
#include "supervisor/wire.h"
#include "unit.h"

static struct loop *loop;
static struct wire *wire;
static int peer = -1;

static char types[64];		/* first letters of what arrived */
static int64_t last_n;
static int closes;
static struct err close_why;
static bool free_in_message, free_in_close;

static void
on_message(const char *type, const cJSON *m, void *arg)
{
	ck_assert_ptr_eq(arg, &wire);
	ck_assert_int_eq(closes, 0);
	snprintf(types + strlen(types), sizeof(types) - strlen(types), "%.1s",
	    type);
	last_n = json_int(m, "n", -1);
	if (free_in_message) {
		wire_free(wire);
		wire = NULL;
	}
}

static void
on_close(const struct err *why, void *arg)
{
	ck_assert_ptr_eq(arg, &wire);
	closes++;
	close_why = *why;
	if (free_in_close) {
		wire_free(wire);
		wire = NULL;
	}
}

static void
setup(void)
{
	int fds[2];

	ck_assert_int_eq(loop_new(&loop, NULL), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds),
	    0);
	peer = fds[1];
	ck_assert_int_eq(wire_new(loop, fds[0], on_message, on_close, &wire,
	    &wire, NULL), 0);
	types[0] = '\0';
	last_n = 0;
	closes = 0;
	free_in_message = free_in_close = false;
}

static void
teardown(void)
{
	wire_free(wire);
	wire = NULL;
	loop_free(loop);
	close(peer);
}

/* A frame with this text as its body. */
static void
add_frame(struct buf *b, const char *text)
{
	uint32_t len = htonl((uint32_t)strlen(text));

	ck_assert_int_eq(buf_append(b, &len, sizeof(len)), 0);
	ck_assert_int_eq(buf_puts(b, text), 0);
}

static void
push(const void *data, size_t len)
{
	ck_assert_int_eq(write(peer, data, len), (ssize_t)len);
	unit_turn(loop);
}

static void
push_frame(const char *text)
{
	struct buf b = {0};

	add_frame(&b, text);
	push(b.data, b.len);
	buf_fini(&b);
}

START_TEST(frames_may_be_split_anywhere)
{
	struct buf b = {0};
	size_t cut;

	add_frame(&b, "{\"v\":1,\"type\":\"a\",\"n\":5}");
	add_frame(&b, "{\"n\":6,\"type\":\"b\",\"v\":1}");
	for (cut = 0; cut <= b.len; cut++) {
		setup();
		if (cut > 0)
			push(b.data, cut);
		ck_assert_uint_eq(strlen(types), cut == b.len ? 2 :
		    cut >= b.len / 2 ? 1 : 0);
		if (cut < b.len)
			push(b.data + cut, b.len - cut);
		ck_assert_str_eq(types, "ab");
		ck_assert_int_eq(last_n, 6);
		ck_assert_int_eq(closes, 0);
		teardown();
	}
	/* And into single bytes. */
	setup();
	for (cut = 0; cut < b.len; cut++)
		push(b.data + cut, 1);
	ck_assert_str_eq(types, "ab");
	teardown();
	buf_fini(&b);
}
END_TEST

START_TEST(many_frames_at_once)
{
	struct buf b = {0};
	int i;

	setup();
	for (i = 0; i < 50; i++)
		add_frame(&b, "{\"v\":1,\"type\":\"x\"}");
	push(b.data, b.len);
	ck_assert_uint_eq(strlen(types), 50);
	buf_fini(&b);
	teardown();
}
END_TEST

static const struct {
	uint32_t	 len;		/* 0: that of the text */
	const char	*text, *why;
} broken[] = {
	{ WIRE_FRAME_MAX + 1, "", "frame of 65537 bytes" },
	{ UINT32_MAX, "", "frame of 4294967295 bytes" },
	{ 0, "", "frame of 0 bytes" },
	{ 0, "nonsense", "not JSON" },
	{ 0, "{\"v\":1,\"type\":\"a\"} x", "bytes after" },
	{ 0, "{\"v\":1,\"type\":\"a\"", "not JSON" },
	{ 0, "{\"v\":2,\"type\":\"a\"}", "wire version" },
	{ 0, "{\"v\":\"1\",\"type\":\"a\"}", "wire version" },
	{ 0, "{\"type\":\"a\"}", "wire version" },
	{ 0, "{\"v\":1}", "without type" },
	{ 0, "{\"v\":1,\"type\":1}", "without type" },
	{ 0, "[1]", "wire version" }, { 0, "5", "wire version" }
};

START_TEST(broken_frames_close_the_wire)
{
	uint32_t len = htonl(broken[_i].len ? broken[_i].len :
	    (uint32_t)strlen(broken[_i].text));
	struct buf b = {0};

	setup();
	push_frame("{\"v\":1,\"type\":\"a\"}");
	free_in_close = _i % 2;
	ck_assert_int_eq(buf_append(&b, &len, sizeof(len)), 0);
	ck_assert_int_eq(buf_puts(&b, broken[_i].text), 0);
	/* What stands behind is not looked at any more. */
	add_frame(&b, "{\"v\":1,\"type\":\"b\"}");
	push(b.data, b.len);
	ck_assert_str_eq(types, "a");
	ck_assert_int_eq(closes, 1);
	ck_assert_msg(strstr(close_why.text, broken[_i].why) != NULL, "%s",
	    close_why.text);
	ck_assert_int_ne(close_why.code, ERR_NONE);
	if (wire != NULL) {
		ck_assert_int_eq(wire_send(wire, wire_message("x")), -1);
		push_frame("{\"v\":1,\"type\":\"c\"}");
	}
	ck_assert_str_eq(types, "a");
	ck_assert_int_eq(closes, 1);
	buf_fini(&b);
	teardown();
}
END_TEST

START_TEST(largest_frame_passes)
{
	char *text = malloc(WIRE_FRAME_MAX + 1);
	struct buf b = {0};
	size_t done = 0, part;

	memset(text, 'x', WIRE_FRAME_MAX);
	text[WIRE_FRAME_MAX] = '\0';
	memcpy(text, "{\"v\":1,\"type\":\"a\",\"t\":\"", 23);
	memcpy(text + WIRE_FRAME_MAX - 2, "\"}", 2);
	add_frame(&b, text);
	setup();
	while (done < b.len) {
		part = b.len - done < 8192 ? b.len - done : 8192;
		push(b.data + done, part);
		done += part;
	}
	ck_assert_str_eq(types, "a");
	ck_assert_int_eq(closes, 0);
	teardown();
	buf_fini(&b);
	free(text);
}
END_TEST

START_TEST(end_of_the_peer_is_told_once)
{
	setup();
	push("\0\0", 2);
	shutdown(peer, SHUT_WR);
	unit_turn(loop);
	unit_turn(loop);
	ck_assert_int_eq(closes, 1);
	ck_assert_int_eq(close_why.code, ERR_NONE);
	ck_assert_str_eq(close_why.text, "the peer closed");
	teardown();
}
END_TEST

/* The last words count, also of a peer that is gone. */
START_TEST(messages_before_the_end_arrive)
{
	struct buf b = {0};

	setup();
	add_frame(&b, "{\"v\":1,\"type\":\"a\"}");
	add_frame(&b, "{\"v\":1,\"type\":\"b\"}");
	ck_assert_int_eq(write(peer, b.data, b.len), (ssize_t)b.len);
	shutdown(peer, SHUT_RDWR);
	unit_turn(loop);
	unit_turn(loop);
	ck_assert_str_eq(types, "ab");
	ck_assert_int_eq(closes, 1);
	buf_fini(&b);
	teardown();
}
END_TEST

START_TEST(wire_may_be_freed_in_its_callbacks)
{
	struct buf b = {0};

	add_frame(&b, "{\"v\":1,\"type\":\"a\"}");
	add_frame(&b, "{\"v\":1,\"type\":\"b\"}");
	setup();
	free_in_message = true;
	push(b.data, b.len);
	ck_assert_str_eq(types, "a");
	ck_assert_int_eq(closes, 0);
	teardown();
	setup();
	free_in_close = true;
	shutdown(peer, SHUT_RDWR);
	unit_turn(loop);
	ck_assert_int_eq(closes, 1);
	ck_assert_ptr_null(wire);
	teardown();
	buf_fini(&b);
}
END_TEST

/* Reads as the peer, while the wire goes on sending. */
static void
take(void *out, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = recv(peer, (char *)out + done, len - done, MSG_DONTWAIT);
		if (n == -1) {
			ck_assert_int_eq(errno, EAGAIN);
			unit_turn(loop);
			continue;
		}
		ck_assert_int_gt(n, 0);
		done += (size_t)n;
	}
}

static cJSON *
take_frame(void)
{
	cJSON *m = NULL;
	uint32_t len;
	char *body;

	take(&len, sizeof(len));
	len = ntohl(len);
	ck_assert_uint_le(len, WIRE_FRAME_MAX);
	body = malloc(len);
	take(body, len);
	ck_assert_int_eq(json_parse(body, len, &m, NULL), 0);
	free(body);
	return m;
}

static cJSON *
sized_message(size_t size, int n)
{
	cJSON *m = wire_message("big");
	char *text = malloc(size + 1);

	memset(text, 'x', size);
	text[size] = '\0';
	json_add_text(m, "t", text);
	json_add_int(m, "n", n);
	free(text);
	return m;
}

START_TEST(queue_keeps_whole_frames_in_order)
{
	int sent = 0, i;
	cJSON *m;

	setup();
	while (wire_waiting(wire) < 1000000)
		ck_assert_int_eq(wire_send(wire, sized_message(60000, sent++)),
		    0);
	for (i = 0; i < sent; i++) {
		m = take_frame();
		ck_assert_int_eq(json_int(m, "n", -1), i);
		ck_assert_int_eq(json_int(m, "v", -1), WIRE_VERSION);
		cJSON_Delete(m);
	}
	unit_turn(loop);
	ck_assert_uint_eq(wire_waiting(wire), 0);
	ck_assert_int_eq(wire_send(wire, wire_message("again")), 0);
	m = take_frame();
	ck_assert_str_eq(json_str(m, "type", ""), "again");
	cJSON_Delete(m);
	ck_assert_int_eq(closes, 0);
	teardown();
}
END_TEST

/* A peer that does not read: memory is bounded, and no message is lost in
 * silence, because the wire closes. */
START_TEST(overflow_closes_the_wire)
{
	int sent = 0;

	setup();
	while (wire_send(wire, sized_message(60000, sent)) == 0)
		ck_assert_int_lt(sent++, 1000);
	ck_assert_int_gt(sent, WIRE_QUEUE_MAX / 60100 - 1);
	ck_assert_uint_le(wire_waiting(wire), WIRE_QUEUE_MAX + 60100);
	unit_turn(loop);
	ck_assert_int_eq(closes, 1);
	ck_assert_int_eq(wire_send(wire, wire_message("late")), -1);
	teardown();
}
END_TEST

START_TEST(lossy_messages_take_the_room_they_get)
{
	int sent = 0;

	setup();
	while (wire_send_lossy(wire, sized_message(1000, sent), 20000))
		sent++;
	ck_assert_int_gt(sent, 10);
	ck_assert_uint_le(wire_waiting(wire), 21100);
	/* What must not be lost still has room. */
	ck_assert_int_eq(wire_send(wire, sized_message(1000, 0)), 0);
	teardown();
}
END_TEST

START_TEST(too_long_a_message_is_refused)
{
	setup();
	ck_assert_int_eq(wire_send(wire, sized_message(WIRE_FRAME_MAX, 0)), -1);
	ck_assert_uint_eq(wire_waiting(wire), 0);
	ck_assert_int_eq(wire_send(NULL, wire_message("x")), -1);
	ck_assert(!wire_send_lossy(NULL, wire_message("x"), 100));
	ck_assert_uint_eq(wire_waiting(NULL), 0);
	wire_flush(NULL, 10);
	wire_free(NULL);
	teardown();
}
END_TEST

/* A peer that is gone raises no signal and ends no flush late. */
START_TEST(sending_into_the_void)
{
	int i;

	setup();
	close(peer);
	for (i = 0; i < 10; i++)
		wire_send(wire, sized_message(1000, i));
	wire_flush(wire, 60000);
	ck_assert_uint_eq(wire_waiting(wire), 0);
	unit_turn(loop);
	ck_assert_int_eq(closes, 1);
	peer = -1;
	teardown();
}
END_TEST

START_TEST(flush_waits_only_so_long)
{
	int64_t start;

	setup();
	while (wire_waiting(wire) < 1000000)
		ck_assert_int_eq(wire_send(wire, sized_message(60000, 0)), 0);
	start = clock_mono_ns(&clock_system);
	wire_flush(wire, 50);
	ck_assert_int_ge(clock_mono_ns(&clock_system) - start, 45 * NS_PER_MS);
	ck_assert_uint_gt(wire_waiting(wire), 0);
	teardown();
}
END_TEST

START_TEST(unix_sockets_listen_and_connect)
{
	const char *path = unit_path(unit_dir(), "s");
	struct err err = {0};
	char longer[200];
	int l, c, s;

	ck_assert_int_eq(wire_connect(path, &err), -1);
	ck_assert_int_eq(err.errnum, ENOENT);
	ck_assert_ptr_nonnull(strstr(err.text, path));
	/* A stale file is in nobody's way. */
	unit_write(path, "x", 1);
	l = wire_listen(path, &err);
	ck_assert_msg(l != -1, "%s", err.text);
	c = wire_connect(path, &err);
	ck_assert_msg(c != -1, "%s", err.text);
	s = accept(l, NULL, NULL);
	ck_assert_uint_eq(wire_peer_uid(s), geteuid());
	ck_assert_uint_eq(wire_peer_uid(c), geteuid());
	ck_assert_uint_eq(wire_peer_uid(l + 100), (uid_t)-1);
	ck_assert(fcntl(c, F_GETFD) & FD_CLOEXEC);
	ck_assert(fcntl(l, F_GETFD) & FD_CLOEXEC);
	close(l);
	close(c);
	close(s);
	ck_assert_int_eq(wire_connect(path, &err), -1);
	ck_assert_int_eq(err.errnum, ECONNREFUSED);
	memset(longer, 'a', sizeof(longer));
	longer[0] = '/';
	longer[108] = '\0';
	ck_assert_int_eq(wire_listen(longer, &err), -1);
	ck_assert_int_eq(err.code, ERR_LIMIT);
	ck_assert_int_eq(wire_connect(longer, &err), -1);
	ck_assert_int_eq(err.code, ERR_LIMIT);
}
END_TEST

/* Bytes of a peer that speaks something else. */
START_TEST(random_bytes_do_no_harm)
{
	unsigned char bytes[64];
	int round;
	size_t i;

	for (round = 0; round < 300; round++) {
		setup();
		free_in_close = round % 2;
		for (i = 0; i < sizeof(bytes); i++)
			bytes[i] = (unsigned char)(i < 3 ? 0 : unit_random(256));
		push(bytes, sizeof(bytes));
		ck_assert_int_le(closes, 1);
		ck_assert_str_eq(types, "");
		teardown();
	}
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_test(t, frames_may_be_split_anywhere);
	tcase_add_test(t, many_frames_at_once);
	tcase_add_loop_test(t, broken_frames_close_the_wire, 0,
	    (int)(sizeof(broken) / sizeof(broken[0])));
	tcase_add_test(t, largest_frame_passes);
	tcase_add_test(t, end_of_the_peer_is_told_once);
	tcase_add_test(t, messages_before_the_end_arrive);
	tcase_add_test(t, wire_may_be_freed_in_its_callbacks);
	tcase_add_test(t, queue_keeps_whole_frames_in_order);
	tcase_add_test(t, overflow_closes_the_wire);
	tcase_add_test(t, lossy_messages_take_the_room_they_get);
	tcase_add_test(t, too_long_a_message_is_refused);
	tcase_add_test(t, sending_into_the_void);
	tcase_add_test(t, flush_waits_only_so_long);
	tcase_add_test(t, unix_sockets_listen_and_connect);
	tcase_add_test(t, random_bytes_do_no_harm);
}

int
main(void)
{
	return unit_run("supervisor_wire", add);
}
