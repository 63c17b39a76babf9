/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h - the verbs that live in supervisor/. */
#ifndef HOLDFAST_SUPERVISOR_VERBS_H
#define HOLDFAST_SUPERVISOR_VERBS_H

#include "common/verb.h"

extern const struct verb verb_run, verb_status, verb_stop;
/* internal: started by run, by the supervisor and by the agent */
extern const struct verb verb_supervisor, verb_agent, verb_reaper;

#endif
