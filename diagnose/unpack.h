/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.h - compressed logs, recognised by their first bytes.
 */
#ifndef HOLDFAST_DIAGNOSE_UNPACK_H
#define HOLDFAST_DIAGNOSE_UNPACK_H

#include "diagnose/feed.h"
#include "diagnose/feed_spool.h"

#define UNPACK_OUT	((size_t)256 << 10)	/* bytes unpacked at once */
#define UNPACK_IN	((size_t)4 << 20)	/* ... from so many at most */
/* What the back references of an archive may reach over, or its decoder need:
 * more than any preset of xz(1), and what zstd(1) takes without --long. */
#define UNPACK_MEMORY	((size_t)128 << 20)

struct unpack_format {
	const char	*name;
	const char	*magic;
	size_t		 magic_len;
	/* Appends what the stream unpacks to, all members of it.  On failure what
	 * could be unpacked is there.  NULL: known, but not read; then the
	 * advice says what to do. */
	int		(*decode)(const struct stream *, struct feed_spool *,
			    struct err *err);
	const char	*advice;
};

/* NULL when the bytes are not compressed. */
const struct unpack_format *unpack_recognise(const struct stream *);

/* The decoders, each in a file of its own. */
int	unpack_gz(const struct stream *, struct feed_spool *, struct err *err);
int	unpack_xz(const struct stream *, struct feed_spool *, struct err *err);
int	unpack_zstd(const struct stream *, struct feed_spool *, struct err *err);

/* For the decoders: errors that all of them have, and memory given back behind
 * them while they go through a large archive. */
int	unpack_truncated(struct err *err);
int	unpack_trailing(struct err *err);
void	unpack_release(const struct stream *, size_t at);

#endif
