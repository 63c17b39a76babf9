/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h - the verb that lives in checkpoint/. */
#ifndef HOLDFAST_CHECKPOINT_VERBS_H
#define HOLDFAST_CHECKPOINT_VERBS_H

#include "common/verb.h"

extern const struct verb verb_checkpoint;

#endif
