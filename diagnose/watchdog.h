/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.h - which rank never entered the collective that timed out.
 */
#ifndef HOLDFAST_DIAGNOSE_WATCHDOG_H
#define HOLDFAST_DIAGNOSE_WATCHDOG_H

#include "diagnose/cause.h"
#include "diagnose/verdict.h"

/* Adds suspects to a verdict whose root is a collective that timed out. */
void	watchdog_suspects(const struct case_file *, struct verdict *);

#endif
