/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - finds the step number in the names that trainers give to files.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/names.h"
#include "checkpoint/report.h"
#include "checkpoint/trouble.h"

int
names_add(struct names *names, const char *name)
{
	size_t cap;
	char **list;

	if (names->n == names->cap) {
		cap = names->cap ? names->cap * 2 : 16;
		list = reallocarray(names->list, cap, sizeof(*list));
		if (list == NULL)
			return -1;
		names->list = list;
		names->cap = cap;
	}
	if ((names->list[names->n] = strdup(name)) == NULL)
		return -1;
	names->n++;
	return 0;
}

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void
names_sort(struct names *names)
{
	if (names->n > 0)
		qsort(names->list, names->n, sizeof(*names->list), compare);
}

bool
names_has(const struct names *names, const char *name)
{
	return names->n > 0 && bsearch(&name, names->list, names->n,
	    sizeof(*names->list), compare) != NULL;
}

void
names_fini(struct names *names)
{
	size_t i;

	for (i = 0; i < names->n; i++)
		free(names->list[i]);
	free(names->list);
	memset(names, 0, sizeof(*names));
}

int
names_read(struct names *names, const char *dir)
{
	struct dirent *d;
	DIR *dp;
	int errnum = 0;

	while ((dp = opendir(dir)) == NULL && errno == EINTR)
		;
	if (dp == NULL) {
		trouble_note(dir);
		return -1;
	}
	for (;;) {
		errno = 0;
		if ((d = readdir(dp)) == NULL) {
			errnum = errno;
			break;
		}
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (names->n >= NAMES_MAX || names_add(names, d->d_name) == -1) {
			errnum = ENOMEM;
			break;
		}
	}
	closedir(dp);
	names_sort(names);
	errno = errnum;
	trouble_note(dir);
	return errnum == 0 ? 0 : -1;
}

bool
name_ends_with(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n >= m && strcasecmp(name + n - m, suffix) == 0;
}

bool
name_is_checkpoint_file(const char *name)
{
	/* accelerate's, written by torch.save in spite of their names */
	if (name_ends_with(name, ".pkl"))
		return strncmp(name, "random_states_", 14) == 0 ||
		    strncmp(name, "custom_checkpoint_", 18) == 0;
	return name_ends_with(name, ".pt") || name_ends_with(name, ".pth") ||
	    name_ends_with(name, ".ckpt") || name_ends_with(name, ".bin") ||
	    name_ends_with(name, ".safetensors") ||
	    name_ends_with(name, ".distcp");
}

bool
name_is_pickle(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;

	return (name_ends_with(name, ".pkl") || name_ends_with(name, ".pickle")) &&
	    !name_is_checkpoint_file(name);
}

bool
name_is_temporary(const char *name)
{
	static const char *const ends[] = { "~", ".part", ".partial", ".temp",
	    ".incomplete", ".inprogress", ".lock", ".swp", "-unfinished",
	    ".tmpfile", NULL };
	/* also with something behind it: step10.pt.tmp.4711, .orbax-checkpoint-tmp-1 */
	static const char *const marks[] = { ".tmp", "-checkpoint-tmp", ".dirty.",
	    NULL };
	size_t i;

	if (name[0] == '.' || strncasecmp(name, "tmp-", 4) == 0 ||
	    strncasecmp(name, "tmp_", 4) == 0 ||
	    strncasecmp(name, "temp-", 5) == 0 ||
	    strncasecmp(name, "temp_", 5) == 0)
		return true;
	for (i = 0; ends[i] != NULL; i++)
		if (name_ends_with(name, ends[i]))
			return true;
	for (i = 0; marks[i] != NULL; i++)
		if (strcasestr(name, marks[i]) != NULL)
			return true;
	return false;
}

/* What the word in front of a number makes of it: the highest score wins, then
 * the later number. */
static int
word_score(const char *word, size_t len)
{
	static const struct {
		const char	*word;
		int		 score;
	} words[] = {
		{ "step", 6 }, { "steps", 6 }, { "globalstep", 6 },
		{ "iter", 5 }, { "iters", 5 }, { "iteration", 5 }, { "it", 5 },
		{ "ba", 4 }, { "batch", 4 }, { "update", 4 }, { "updates", 4 },
		{ "checkpoint", 3 }, { "ckpt", 3 }, { "save", 3 }, { "", 3 },
		{ "epoch", 2 }, { "ep", 2 }, { "e", 2 },
		{ "rank", -1 }, { "shard", -1 }, { "part", -1 }, { "of", -1 },
		{ "tp", -1 }, { "pp", -1 }, { "dp", -1 }, { "mp", -1 },
		{ "zo", -1 }, { "wp", -1 }, { "gpu", -1 }, { "node", -1 },
		{ "seed", -1 }, { "v", -1 }, { "version", -1 }, { "loss", -1 },
		{ "acc", -1 }, { "ppl", -1 }, { "lr", -1 }, { "bs", -1 },
		{ "fold", -1 }, { NULL, 0 }
	};
	size_t i;

	for (i = 0; words[i].word != NULL; i++)
		if (strlen(words[i].word) == len &&
		    strncasecmp(words[i].word, word, len) == 0)
			return words[i].score;
	return 1;
}

/* The digits at name[*at], moved behind them; false when no step can be so large. */
static bool
take_number(const char *name, size_t *at, int64_t *out)
{
	int64_t n = 0;
	size_t digits = 0;

	while (isdigit((unsigned char)name[*at])) {
		if (digits++ < 16)
			n = n * 10 + (name[*at] - '0');
		(*at)++;
	}
	*out = n;
	return digits <= 15;
}

static int64_t
find_step(const char *name, int least)
{
	int64_t best = REPORT_UNKNOWN, n;
	int score, best_score = least, before = 3;
	size_t i = 0, word, end, start;

	while (name[i] != '\0') {
		if (!isdigit((unsigned char)name[i])) {
			i++;
			continue;
		}
		start = i;
		end = start;
		while (end > 0 && strchr("-_=. ", name[end - 1]) != NULL)
			end--;
		word = end;
		while (word > 0 && isalpha((unsigned char)name[word - 1]))
			word--;
		/* a number right behind another one counts as that did */
		if (word == end && word > 0)
			score = before;
		else
			score = word_score(name + word, end - word);
		/* a fraction (loss=0.25) or a size (7b) is no step */
		if (end + 1 == start && name[end] == '.' && end > 0 &&
		    isdigit((unsigned char)name[end - 1]))
			score = -1;
		if (!take_number(name, &i, &n))
			score = -1;
		if (isalpha((unsigned char)name[i]) &&
		    !isalpha((unsigned char)name[i + 1]))
			score = -1;
		before = score;
		if (score >= best_score) {
			best = n;
			best_score = score;
		}
	}
	return best;
}

int64_t
name_step(const char *name)
{
	return find_step(name, 1);
}

int64_t
name_folder_step(const char *name)
{
	return find_step(name, 2);
}

char *
name_kind(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *kind = strdup(slash != NULL ? slash + 1 : path), *from, *to;

	for (from = to = kind; kind != NULL && *from != '\0'; to++) {
		*to = *from;
		if (!isdigit((unsigned char)*from++))
			continue;
		*to = '#';
		while (isdigit((unsigned char)*from))
			from++;
	}
	if (kind != NULL)
		*to = '\0';
	return kind;
}
