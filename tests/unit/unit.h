/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h - what the unit tests of common/ and supervisor/ share: one suite, one
 * temporary folder that is removed whatever a test does.
 */
#ifndef HOLDFAST_TESTS_UNIT_H
#define HOLDFAST_TESTS_UNIT_H

#include <check.h>
#include <stddef.h>

struct loop;

/* Runs all tests that `add` puts into the case; for main(): 0 or 1. */
int	unit_run(const char *name, void (*add)(TCase *));

/* A new empty folder inside the temporary one; valid until the test ends. */
const char *unit_dir(void);
/* DIR/NAME in one of a few static buffers. */
const char *unit_path(const char *dir, const char *name);
/* Writes a file, and reads one into a static buffer (NUL-terminated). */
void	unit_write(const char *path, const void *data, size_t len);
const char *unit_read(const char *path, size_t *len);
/* Entries of a folder without . and .. */
int	unit_count(const char *dir);

/* Runs the loop for as long as something is ready at once. */
void	unit_turn(struct loop *);

/* A pseudo-random number below n (n > 0), the same ones in every run. */
unsigned unit_random(unsigned n);

#endif
