/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incident.c - names and memory of the incident record.
 */
#include <string.h>

#include "supervisor/incident.h"

static const char *const sign_names[] = {
	[SIGN_NONE] = "none", [SIGN_EXIT] = "exit", [SIGN_START] = "start",
	[SIGN_LOSS] = "loss", [SIGN_RESUME_MISMATCH] = "resume_mismatch",
	[SIGN_EXIT_TIMEOUT] = "exit_timeout",
	[SIGN_HANG] = "hang", [SIGN_SPIKE] = "loss_spike",
	[SIGN_AGENT_LOST] = "agent_lost"
};

static const char *const decision_names[] = {
	[DECISION_RESTART] = "restart", [DECISION_STOP] = "stop",
	[DECISION_REQUEUE] = "requeue"
};

const char *
sign_kind_name(enum sign_kind k)
{
	return sign_names[k];
}

enum sign_kind
sign_kind_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(sign_names) / sizeof(sign_names[0]); i++)
		if (strcmp(sign_names[i], name) == 0)
			return (enum sign_kind)i;
	return SIGN_NONE;
}

const char *
decision_kind_name(enum decision_kind k)
{
	return decision_names[k];
}

void
incident_clear(struct incident *in)
{
	cJSON_Delete(in->verdict.json);
	cJSON_Delete(in->selection.json);
	*in = (struct incident){0};
}
