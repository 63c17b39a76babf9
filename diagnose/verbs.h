/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h - the verbs that live in diagnose/. */
#ifndef HOLDFAST_DIAGNOSE_VERBS_H
#define HOLDFAST_DIAGNOSE_VERBS_H

#include "common/verb.h"

extern const struct verb verb_diagnose, verb_rules;

#endif
