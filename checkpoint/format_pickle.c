/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_pickle.c - what pickle.dump() wrote, one object or several, such as the NumPy
 * parameters of a JAX trainer.  Source: Lib/pickle.py of CPython.
 *
 * Whole means that each pickle reaches its STOP and that nothing follows the last.
 * What joblib writes has raw arrays between its opcodes and is not judged.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/format.h"
#include "checkpoint/pickle.h"

#define UNVERIFIED	HOLDFAST_CHECKPOINT_UNVERIFIED
#define BYTES_MAX	(64u << 20)	/* of a file that is looked into */
#define TAIL		16		/* zeroes that no pickle ends with */

static bool
is_pickle(const uint8_t *data, size_t len)
{
	return len >= 2 && data[0] == 0x80 && data[1] >= 2 && data[1] <= 5;
}

static bool
ends_in_zeroes(const uint8_t *data, size_t len)
{
	static const uint8_t zeroes[TAIL];

	return len >= TAIL && memcmp(data + len - TAIL, zeroes, TAIL) == 0;
}

static void
check_pickles(const uint8_t *data, size_t len, struct report *r)
{
	enum pickle_result rc;
	struct err err = {0};
	struct pickle p;
	size_t at = 0;

	while (at < len && is_pickle(data + at, len - at)) {
		rc = pickle_read(&p, data + at, len - at, &err);
		at += p.used;
		pickle_free(&p);
		if (rc == PICKLE_OK)
			continue;
		if (memmem(data, len, "joblib", 6) != NULL)
			report_say(r, UNVERIFIED, "written by joblib: not looked "
			    "into");
		else if (ends_in_zeroes(data, len))
			report_say(r, HOLDFAST_CHECKPOINT_CORRUPT, "ends in zeroes, "
			    "not in a pickle");
		else if (rc == PICKLE_TRUNCATED)
			report_say(r, HOLDFAST_CHECKPOINT_INCOMPLETE,
			    "cut off inside its pickle");
		else
			report_say(r, UNVERIFIED, "pickle: %s", err.text);
		return;
	}
	if (at < len)
		report_say(r, UNVERIFIED, "%zu bytes behind its pickle", len - at);
}

static void
check_file(struct input *in, const struct check *check, struct report *r)
{
	uint8_t *data;

	(void)check;
	r->checksum = REPORT_CHECKSUM_NONE;
	report_note(r, "a pickle: no checksum, not searched for NaN");
	if (in->size > BYTES_MAX) {
		report_say(r, UNVERIFIED, "a pickle of %" PRIu64 " bytes is too "
		    "large to look into", in->size);
		return;
	}
	if ((data = malloc((size_t)in->size + 1)) == NULL) {
		report_say(r, UNVERIFIED, "out of memory");
		return;
	}
	if (input_read(in, 0, data, (size_t)in->size, r) == 0) {
		check_pickles(data, (size_t)in->size, r);
		r->contents_read = true;
	}
	free(data);
}

static bool
recognise(const struct item *it)
{
	return it->is_regular && is_pickle(it->head, it->head_len);
}

const struct format format_pickle = {
	.name = "pickle",
	.recognise = recognise,
	.check = check_file
};
