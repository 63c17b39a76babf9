/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - one line per event, for programs (libraries do not log).
 *
 * Text form: "2026-01-31T03:12:41.123Z warn agent: message".  JSON form: one
 * object per line {"time","level","program","message"}.
 */
#ifndef HOLDFAST_COMMON_LOG_H
#define HOLDFAST_COMMON_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Where and how: fd is borrowed; program stands in each line. */
void	log_open(int fd, const char *program, bool json, enum log_level least);
/* Lines go to this function instead; NULL: back to the descriptor. */
void	log_sink(void (*fn)(const char *line, size_t len, void *arg), void *arg);
/* The same on standard error, as HOLDFAST_LOG (text or json) and
 * HOLDFAST_LOG_LEVEL (debug, info, warn, error) say; text and info by default. */
void	log_open_environment(const char *program);
void	log_msg(enum log_level level, const char *fmt, ...)
	    __attribute__((format(printf, 2, 3)));

#define log_debug(...)	log_msg(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)	log_msg(LOG_INFO, __VA_ARGS__)
#define log_warn(...)	log_msg(LOG_WARN, __VA_ARGS__)
#define log_error(...)	log_msg(LOG_ERROR, __VA_ARGS__)

#endif
