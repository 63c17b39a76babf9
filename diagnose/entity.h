/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entity.h - things that a line names: a process, a path, a network adapter, a GPU.
 */
#ifndef HOLDFAST_DIAGNOSE_ENTITY_H
#define HOLDFAST_DIAGNOSE_ENTITY_H

#include <stddef.h>

/* The process that a line is about: "pid 12", "(pid: 12)", "pid=12", "Killed process
 * 12", "received by PID 12"; -1 when there is none. */
int	entity_pid(const char *line, size_t len);
/* Copies into out, which becomes "" when the line names none: a file or directory; a
 * network adapter ("mlx5_0", "ib0", "eth0"); a GPU, by its PCI address or its index
 * ("GPU 3", "cuda:3"). */
void	entity_path(const char *line, size_t len, char *out, size_t size);
void	entity_nic(const char *line, size_t len, char *out, size_t size);
void	entity_gpu(const char *line, size_t len, char *out, size_t size);

#endif
