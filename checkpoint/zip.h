/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip.h - the structure of a ZIP archive, checked without reading its data.
 *
 * Source of the format: PKWARE APPNOTE 6.3.10; what torch.save writes in it:
 * caffe2/serialize/inline_container.cc of PyTorch and its miniz.
 *
 * Sound means: the archive ends where its end record says, the central directory
 * lies right before that, names are unique, and local header, data and descriptor
 * of all records tile the bytes from 0 to the central directory and agree with it.
 */
#ifndef HOLDFAST_CHECKPOINT_ZIP_H
#define HOLDFAST_CHECKPOINT_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "checkpoint/input.h"

#define ZIP_STORED	0
#define ZIP_DEFLATED	8

/* Limits on what is taken from outside. */
#define ZIP_DIRECTORY_MAX	(256u << 20)	/* bytes of central directory */

struct zip_entry {
	const char	*name;		/* not terminated; inside zip->directory */
	uint16_t	 name_len;
	uint16_t	 flags;
	uint16_t	 method;
	uint32_t	 crc;
	uint64_t	 csize;		/* bytes in the archive */
	uint64_t	 usize;		/* bytes of the record */
	uint64_t	 header;	/* of the local header, from base */
	uint64_t	 data;		/* of the first byte of data, from base */
};

struct zip {
	struct input		*in;		/* borrowed */
	uint64_t		 base, size;	/* the archive inside the file */
	uint8_t			*directory;
	uint64_t		 directory_at, directory_size;
	struct zip_entry	*entries;	/* in order of position */
	size_t			 n;
	struct zip_entry	**by_name;
	bool			 no_crc;	/* all records carry 0 */
};

/* Opens the archive at base of the file, size bytes long, and checks its whole
 * structure.  Returns 0, or -1 with the reason said.  zip_close() in both cases. */
int	zip_open(struct zip *, struct input *, uint64_t base, uint64_t size,
	    struct report *);
void	zip_close(struct zip *);

/* The record of that name or NULL. */
struct zip_entry *zip_find(const struct zip *, const char *name, size_t len);

/* Appends a record's bytes (inflated) to out and checks its CRC32.  Records
 * above max are "unverified".  Returns 0, or -1 with the reason said. */
int	zip_load(const struct zip *, const struct zip_entry *, size_t max,
	    struct buf *out, struct report *);

/* Hands the bytes of a record, inflated if need be, to sink in blocks of
 * INPUT_BLOCK bytes (the last one may be shorter).  block is room for INPUT_BLOCK
 * bytes.  Returns 0, or -1 with the reason said. */
int	zip_stream(const struct zip *, const struct zip_entry *, uint8_t *block,
	    void (*sink)(void *arg, const uint8_t *data, size_t len), void *arg,
	    struct report *);

/* printf("%.*s") arguments of a record's name, cut to what a reason quotes. */
#define ZIP_NAME(e)							\
	(int)((e)->name_len < REPORT_NAME_MAX ? (e)->name_len : REPORT_NAME_MAX), \
	(e)->name

#endif
