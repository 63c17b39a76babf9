/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holdfast-diagnose.h - what went wrong in the logs of a training run.
 *
 * A handle holds a rule set.  It may be used by one thread at a time; different
 * handles are independent.  The library prints nothing and never exits.
 *
 * Large files are mapped.  The first one of a process installs a handler for
 * SIGBUS, which a file that is cut meanwhile raises; every other SIGBUS goes to
 * the handler that was there before.  A call may start threads, which have ended
 * when it returns and take no signals.  What does not fit into memory, such as
 * standard input and large compressed files, goes to a file without a name in
 * TMPDIR.
 * Link with -lholdfast-diagnose (pkg-config: holdfast-diagnose).
 */
#ifndef HOLDFAST_DIAGNOSE_H
#define HOLDFAST_DIAGNOSE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct holdfast_diagnose;

/* Size that is enough for every error text. */
#define HOLDFAST_DIAGNOSE_ERROR_MAX	512

/*
 * Opens the shipped rules, and those in rules_dir unless it is NULL (files of
 * holdfast-rules(5)).  Returns NULL on failure, with one line in error, which may
 * be NULL.  Rules with a mistake are left out.
 */
struct holdfast_diagnose *holdfast_diagnose_open(const char *rules_dir,
    char *error, size_t error_size);
void holdfast_diagnose_close(struct holdfast_diagnose *);

/*
 * Diagnoses files, directories, or "-" for standard input, together.  Returns
 * one JSON object of schema holdfast.verdict/1 (see holdfast-diagnose(1)): one line
 * of valid UTF-8, ended by a newline, to be freed with holdfast_diagnose_free().
 * What could not be read is listed in its "missing_evidence"; NULL only when nothing
 * could be, or when memory was short.
 */
char *holdfast_diagnose_paths(struct holdfast_diagnose *,
    const char *const *paths, size_t count, char *error, size_t error_size);

/* As holdfast_diagnose_paths() for bytes in memory; name stands for the file. */
char *holdfast_diagnose_memory(struct holdfast_diagnose *, const char *name,
    const void *data, size_t len, char *error, size_t error_size);

/* NULL is fine. */
void holdfast_diagnose_free(char *);

#ifdef __cplusplus
}
#endif

#endif
