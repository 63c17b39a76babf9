/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_wire.c - packets with a descriptor, and the table of a snapshot.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "checkpoint/snapshot_wire.h"

int
snapshot_send(int fd, struct snapshot_message *m, int pass_fd)
{
	union {
		struct cmsghdr	head;
		char		room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { m, sizeof(*m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	m->magic = SNAPSHOT_MAGIC;
	if (pass_fd != -1) {
		memset(&control, 0, sizeof(control));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &pass_fd, sizeof(pass_fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (n == -1 && errno == EINTR);
	return n == (ssize_t)sizeof(*m) ? 0 : -1;
}

/* The first descriptor is kept, more than one are closed: none of ours sends them. */
static int
take_fds(struct msghdr *msg)
{
	struct cmsghdr *c;
	int fds[16], kept = -1;
	size_t i, n;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		n = n < 16 ? n : 16;
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
		for (i = 0; i < n; i++) {
			if (kept == -1)
				kept = fds[i];
			else
				close(fds[i]);
		}
	}
	return kept;
}

int
snapshot_receive(int fd, struct snapshot_message *m, int *passed)
{
	union {
		struct cmsghdr	head;
		char		room[CMSG_SPACE(16 * sizeof(int))];
	} control;
	struct iovec iov = { m, sizeof(*m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n;

	*passed = -1;
	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n == -1 && errno == EINTR);
	if (n == -1)
		return -1;
	*passed = take_fds(&msg);
	if (n == 0)
		return 0;
	if (n != (ssize_t)sizeof(*m) || m->magic != SNAPSHOT_MAGIC ||
	    (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
		if (*passed != -1)
			close(*passed);
		*passed = -1;
		errno = EPROTO;
		return -1;
	}
	m->text[sizeof(m->text) - 1] = '\0';
	return 1;
}

int
snapshot_table_add(struct buf *b, const struct torch_entry *e, uint64_t offset)
{
	static const char zeros[8];
	struct snapshot_head h = { .kind = e->kind, .dtype = e->dtype,
	    .name_len = (uint32_t)e->name_len, .ndim = e->ndim,
	    .offset = offset, .bytes = e->bytes };

	if (e->kind == TORCH_FLOAT)
		memcpy(&h.value, &e->real, sizeof(h.value));
	else
		h.value = (uint64_t)e->integer;
	if (buf_append(b, &h, sizeof(h)) == -1 ||
	    buf_append(b, e->shape, e->ndim * sizeof(uint64_t)) == -1 ||
	    buf_append(b, e->name, e->name_len) == -1)
		return -1;
	return buf_append(b, zeros, -b->len % 8);
}

static int
read_entry(struct torch_entry *e, const uint8_t *p, size_t left, size_t *used,
    const uint8_t *area, uint64_t area_bytes, struct err *err)
{
	struct snapshot_head h;
	size_t need;

	if (left < sizeof(h))
		return err_set(err, ERR_FORMAT, "the table of the snapshot is cut");
	memcpy(&h, p, sizeof(h));
	if (h.name_len > TORCH_WRITE_NAME_MAX || h.ndim > TORCH_WRITE_DIMS_MAX)
		return err_set(err, ERR_LIMIT, "the table of the snapshot has too "
		    "long a name or shape");
	need = sizeof(h) + h.ndim * sizeof(uint64_t) + h.name_len;
	need += -need % 8;
	if (left < need)
		return err_set(err, ERR_FORMAT, "the table of the snapshot is cut");
	if (h.offset > area_bytes || h.bytes > area_bytes - h.offset)
		return err_set(err, ERR_FORMAT, "an entry of the snapshot lies "
		    "outside of its memory");
	*e = (struct torch_entry){ .kind = h.kind, .dtype = h.dtype,
	    .name = (const char *)p + sizeof(h) + h.ndim * sizeof(uint64_t),
	    .name_len = h.name_len, .ndim = h.ndim,
	    .shape = (const uint64_t *)(const void *)(p + sizeof(h)),
	    .data = area + h.offset, .bytes = h.bytes,
	    .integer = (int64_t)h.value };
	memcpy(&e->real, &h.value, sizeof(e->real));
	*used = need;
	return torch_entry_check(e, err);
}

int
snapshot_table_read(const void *table, size_t len, size_t n, const void *area,
    uint64_t area_bytes, struct torch_entry **out, struct err *err)
{
	const uint8_t *p = table;
	struct torch_entry *list;
	size_t i, at = 0, used = 0;

	*out = NULL;
	if (n > TORCH_WRITE_ENTRIES_MAX || n > len / sizeof(struct snapshot_head))
		return err_set(err, ERR_LIMIT, "the snapshot has too many entries");
	if ((list = calloc(n + 1, sizeof(*list))) == NULL)
		return err_memory(err);
	for (i = 0; i < n; i++, at += used)
		if (read_entry(&list[i], p + at, len - at, &used, area,
		    area_bytes, err) == -1) {
			free(list);
			return -1;
		}
	*out = list;
	return 0;
}
