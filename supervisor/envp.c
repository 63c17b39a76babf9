/* SPDX-License-Identifier: Apache-2.0 */
/*
 * envp.c - builds an environment for exec.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/envp.h"

extern char **environ;

static bool
names(const char *setting, const char *name)
{
	size_t n = strlen(name);

	return strncmp(setting, name, n) == 0 && setting[n] == '=';
}

static bool
is_changed(const char *setting, const cJSON *set)
{
	const cJSON *v;

	cJSON_ArrayForEach(v, set)
		if (names(setting, v->string))
			return true;
	return false;
}

static bool
has(char *const *envp, const char *name)
{
	for (; *envp != NULL; envp++)
		if (names(*envp, name))
			return true;
	return false;
}

static int
add(char **envp, size_t *n, const cJSON *v)
{
	if (!cJSON_IsString(v))
		return 0;
	if (asprintf(&envp[*n], "%s=%s", v->string, v->valuestring) == -1) {
		envp[*n] = NULL;
		return -1;
	}
	(*n)++;
	return 0;
}

char **
envp_new(const cJSON *set, const cJSON *defaults)
{
	size_t n = 0, count = 1;
	const cJSON *v;
	char **envp, **e;

	for (e = environ; *e != NULL; e++)
		count++;
	count += (size_t)cJSON_GetArraySize(set);
	count += (size_t)cJSON_GetArraySize(defaults);
	if ((envp = calloc(count, sizeof(*envp))) == NULL)
		return NULL;
	for (e = environ; *e != NULL; e++)
		if (!is_changed(*e, set) && (envp[n++] = strdup(*e)) == NULL)
			goto fail;
	cJSON_ArrayForEach(v, set)
		if (add(envp, &n, v) == -1)
			goto fail;
	cJSON_ArrayForEach(v, defaults)
		if (!has(envp, v->string) && add(envp, &n, v) == -1)
			goto fail;
	return envp;
fail:
	envp_free(envp);
	return NULL;
}

void
envp_free(char **envp)
{
	char **e;

	for (e = envp; e != NULL && *e != NULL; e++)
		free(*e);
	free(envp);
}
