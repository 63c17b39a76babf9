/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_flush.c - see snapshot_flush.h.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "common/clock.h"
#include "checkpoint/snapshot_client.h"
#include "checkpoint/snapshot_flush.h"

int
snapshot_flush(const char *path, int64_t timeout_ms, struct err *err)
{
	struct snapshot_message m = { .type = SNAPSHOT_FLUSH };
	int64_t end = clock_mono_ns(&clock_system) + timeout_ms * NS_PER_MS, left;
	char text[SNAPSHOT_TEXT_MAX];
	struct pollfd p = { .events = POLLIN };
	int passed, rc = 0;

	if (snapshot_link_connect(path, &p.fd, text, sizeof(text)) != 0)
		return 0;
	if (snapshot_send(p.fd, &m, -1) == -1)
		goto out;
	for (;;) {
		left = (end - clock_mono_ns(&clock_system)) / NS_PER_MS;
		if (left <= 0) {
			rc = err_set(err, ERR_BUSY, "snapshots are still being "
			    "written after %lld s", (long long)timeout_ms / 1000);
			break;
		}
		rc = poll(&p, 1, left < 1000 ? (int)left : 1000);
		if (rc == -1 && errno != EINTR) {
			rc = err_errno(err, "cannot wait for snapshots");
			break;
		}
		if (rc <= 0)
			continue;
		/* The answer, or the end of the one who had it. */
		rc = 0;
		if (snapshot_receive(p.fd, &m, &passed) == 1 && passed != -1)
			close(passed);
		break;
	}
out:
	close(p.fd);
	return rc;
}
