/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_index.c - holds NAME.index.json against the shards beside it.
 */
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "checkpoint/grid.h"
#include "checkpoint/hf_index.h"
#include "checkpoint/peek.h"

#define INCOMPLETE	HOLDFAST_CHECKPOINT_INCOMPLETE
#define CORRUPT		HOLDFAST_CHECKPOINT_CORRUPT

static const struct {
	const char	*index, *shards;
} kinds[] = {
	{ "model.safetensors.index.json", "model-#-of-#.safetensors" },
	{ "pytorch_model.bin.index.json", "pytorch_model-#-of-#.bin" },
	{ "diffusion_pytorch_model.safetensors.index.json",
	    "diffusion_pytorch_model-#-of-#.safetensors" },
	{ NULL, NULL }
};

struct entry {
	const char	*file, *tensor;	/* borrowed from the JSON */
};

static int
by_file(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = strcmp(x->file, y->file);

	return c != 0 ? c : strcmp(x->tensor, y->tensor);
}

/* The keys of a torch.save file's dict, sorted. */
static int
torch_names(const char *dir, const char *name, struct names *names)
{
	const struct pickle_node *node;
	const struct pickle_value *root;
	struct peek peek;
	char *key;
	size_t i;
	int rc = -1;

	if (peek_open(&peek, dir, name) == -1)
		goto out;
	root = &peek.pickle.root;
	if (root->kind != PICKLE_DICT && (root->kind != PICKLE_OBJECT ||
	    !root->node->pairs))
		goto out;
	node = root->node;
	for (i = 0; i + 1 < node->n; i += 2) {
		if (node->items[i].kind != PICKLE_TEXT)
			goto out;
		key = strndup(node->items[i].s, node->items[i].len);
		if (key == NULL || names_add(names, key) == -1) {
			free(key);
			goto out;
		}
		free(key);
	}
	names_sort(names);
	rc = 0;
out:
	peek_fini(&peek);
	return rc;
}

/* The n entries of one file: it holds these tensors and no others. */
static void
check_shard(const struct item *it, const char *index, const struct entry *e,
    size_t n, struct report *r)
{
	struct names have = {0};
	char *path = NULL;
	size_t i, at;
	int rc;

	if (e->file[0] == '\0' || strchr(e->file, '/') != NULL) {
		report_say(r, CORRUPT, "%s names the file '%.*s'", index,
		    REPORT_NAME_MAX, e->file);
		return;
	}
	if (!names_has(&it->names, e->file)) {
		report_say(r, INCOMPLETE, "%.*s is missing, which %s names",
		    REPORT_NAME_MAX, e->file, index);
		return;
	}
	if ((path = file_join(it->path, e->file)) == NULL)
		return;
	rc = name_ends_with(e->file, ".safetensors") ?
	    safetensors_names(path, &have) :
	    torch_names(it->path, e->file, &have);
	for (i = 0; rc == 0 && i < n; i++)
		if (!names_has(&have, e[i].tensor))
			report_say(r, CORRUPT, "%.*s does not hold %.*s, which %s "
			    "places there", REPORT_NAME_MAX, e->file,
			    REPORT_NAME_MAX, e[i].tensor, index);
	for (i = 0, at = 0; rc == 0 && i < have.n; i++) {
		while (at < n && strcmp(e[at].tensor, have.list[i]) < 0)
			at++;
		if (at == n || strcmp(e[at].tensor, have.list[i]) != 0)
			report_say(r, CORRUPT, "%.*s holds %.*s, which %s does not "
			    "place there", REPORT_NAME_MAX, e->file,
			    REPORT_NAME_MAX, have.list[i], index);
	}
	names_fini(&have);
	free(path);
}

static void
check_index(const struct item *it, const char *index, struct report *r)
{
	cJSON *json = folder_json(it, index, r);
	const cJSON *map, *file;
	struct entry *list = NULL;
	size_t n = 0, i, end;

	if (json == NULL)
		return;
	map = cJSON_GetObjectItemCaseSensitive(json, "weight_map");
	if (!cJSON_IsObject(map) || map->child == NULL) {
		report_say(r, CORRUPT, "%s has no weight_map", index);
		goto out;
	}
	list = calloc((size_t)cJSON_GetArraySize(map), sizeof(*list));
	if (list == NULL)
		goto out;
	cJSON_ArrayForEach(file, map) {
		if (!cJSON_IsString(file)) {
			report_say(r, CORRUPT, "%s: no file for %.*s", index,
			    REPORT_NAME_MAX, file->string);
			goto out;
		}
		list[n].file = file->valuestring;
		list[n++].tensor = file->string;
	}
	qsort(list, n, sizeof(*list), by_file);
	for (i = 1; i < n; i++)
		if (by_file(&list[i - 1], &list[i]) == 0)
			report_say(r, CORRUPT, "%s names %.*s twice", index,
			    REPORT_NAME_MAX, list[i].tensor);
	for (i = 0; i < n; i = end) {
		for (end = i + 1; end < n && strcmp(list[i].file,
		    list[end].file) == 0; end++)
			;
		check_shard(it, index, list + i, end - i, r);
	}
out:
	free(list);
	cJSON_Delete(json);
}

/* A shard of that kind, or NULL. */
static const char *
find_shard(const struct item *it, const char *pattern)
{
	unsigned at[GRID_DIMS];
	size_t i;

	for (i = 0; i < it->names.n; i++)
		if (grid_match(it->names.list[i], pattern, at))
			return it->names.list[i];
	return NULL;
}

/* NAME.safetensors.index.json, also of a variant: NAME.safetensors.index.fp16.json. */
static bool
is_index(const char *name)
{
	return name_ends_with(name, ".json") && !name_is_temporary(name) &&
	    (strstr(name, ".safetensors.index.") != NULL ||
	    strstr(name, ".bin.index.") != NULL);
}

bool
hf_index_present(const struct item *it)
{
	size_t i;

	for (i = 0; i < it->names.n; i++)
		if (is_index(it->names.list[i]))
			return true;
	for (i = 0; kinds[i].index != NULL; i++)
		if (find_shard(it, kinds[i].shards) != NULL)
			return true;
	return false;
}

bool
hf_index_check(const struct item *it, struct report *r)
{
	const char *shard;
	bool any = false;
	size_t i;

	for (i = 0; i < it->names.n; i++)
		if (is_index(it->names.list[i])) {
			check_index(it, it->names.list[i], r);
			any = true;
		}
	for (i = 0; kinds[i].index != NULL; i++) {
		shard = find_shard(it, kinds[i].shards);
		if (shard == NULL || names_has(&it->names, kinds[i].index))
			continue;
		report_say(r, INCOMPLETE, "%s without %s: the save did not finish",
		    shard, kinds[i].index);
		any = true;
	}
	return any;
}

bool
hf_weights_present(const struct item *it)
{
	static const char *const weights[] = { "model.safetensors",
	    "pytorch_model.bin", "adapter_model.safetensors", "adapter_model.bin",
	    "pytorch_model_fsdp.bin", "pytorch_model_fsdp_0", NULL };
	size_t i;

	for (i = 0; weights[i] != NULL; i++)
		if (names_has(&it->names, weights[i]))
			return true;
	return false;
}
