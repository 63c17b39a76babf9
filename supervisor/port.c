/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port.c - picks and holds a TCP port.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervisor/port.h"

int
port_hold(int *port, struct err *err)
{
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6 };
	struct sockaddr_in addr4 = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	int fd, one = 1, rc;

	/* The trainer's store listens on [::] where there is IPv6. */
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd != -1) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		rc = bind(fd, (struct sockaddr *)&addr, sizeof(addr));
		if (rc == 0 && getsockname(fd, (struct sockaddr *)&addr,
		    &len) == 0) {
			*port = ntohs(addr.sin6_port);
			return fd;
		}
		close(fd);
	}
	len = sizeof(addr4);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return err_errno(err, "cannot make a socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr4, sizeof(addr4)) == -1 ||
	    getsockname(fd, (struct sockaddr *)&addr4, &len) == -1) {
		err_errno(err, "cannot hold a port");
		close(fd);
		return -1;
	}
	*port = ntohs(addr4.sin_port);
	return fd;
}
