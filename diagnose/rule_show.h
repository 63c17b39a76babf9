/* SPDX-License-Identifier: Apache-2.0 */
/* rule_show.h - a rule for people and for programs. */
#ifndef HOLDFAST_DIAGNOSE_RULE_SHOW_H
#define HOLDFAST_DIAGNOSE_RULE_SHOW_H

#include <stdio.h>

#include "common/json.h"
#include "diagnose/card.h"
#include "diagnose/rule.h"

/* Members of the rule into an object. */
void	rule_show_json(const struct rule *, cJSON *);
/* Rows "name      text", wrapped where they are sentences. */
void	rule_show(const struct rule *, const struct card_style *, FILE *);

/* The layer a rule belongs to, which is its file's name: "nccl" of
 * ".../nccl.yaml". */
#define RULE_LAYER_MAX	64
void	rule_layer(const struct rule *, char out[RULE_LAYER_MAX]);
/* What it does when its reason is the cause; ACTION_NONE without a reason. */
enum action_kind rule_action(const struct rule *);

/* Lines between it and the rule it is `after`. */
int	rule_within(const struct rule *);

/* The rule of an id; NULL, with the nearest one in the error, when there is
 * none. */
struct rule *rule_named(const struct rule_set *, const char *id,
	    struct err *err);

#endif
