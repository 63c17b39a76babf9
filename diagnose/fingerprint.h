/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fingerprint.h - a print that the same failure has again in another run.
 */
#ifndef HOLDFAST_DIAGNOSE_FINGERPRINT_H
#define HOLDFAST_DIAGNOSE_FINGERPRINT_H

#include "diagnose/cause.h"

#define FINGERPRINT_SIZE	17	/* 16 hexadecimal digits */

void	fingerprint_make(const struct case_file *, const struct cause *,
	    char out[FINGERPRINT_SIZE]);
/* What the print of a message is made of; returns its length, at most size. */
size_t	fingerprint_words(const char *text, size_t len, char *out, size_t size);

#endif
