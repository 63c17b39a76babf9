/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - step, loss, gradient norm and step time out of one line.
 *
 * Looks for a word that names a step and the number behind it, then for words
 * that name the other values; a line counts only with a step and one of them,
 * or with a loss in a Python dictionary, or as a progress bar that does not
 * tell of loading or downloading.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "diagnose/progress.h"

#define LOOK_MAX	2048	/* a step line is shorter */

#define WORDS_MAX	200	/* later ones are not looked at */

/* A line, and where its words begin: those with the same first letter, in any case,
 * are chained.  0: no further one, else the word's number + 1. */
struct words {
	const char	*p;
	size_t		 len;
	size_t		 count;
	uint8_t		 first[26];
	uint16_t	 start[WORDS_MAX];
	uint8_t		 next[WORDS_MAX];
};

static bool
word_char(char c)
{
	unsigned char l = (unsigned char)(c | 0x20);

	return (unsigned char)(l - 'a') < 26 || (unsigned char)(c - '0') < 10 ||
	    c == '_';
}

static void
find_starts(struct words *w)
{
	uint8_t *last[26];
	bool inside = false, is;
	unsigned letter;
	size_t i;

	for (i = 0; i < 26; i++)
		last[i] = &w->first[i];
	for (i = 0; i < w->len && w->count < WORDS_MAX; i++) {
		is = word_char(w->p[i]);
		letter = (unsigned char)((unsigned char)(w->p[i] | 0x20) - 'a');
		if (is && !inside && letter < 26) {
			w->start[w->count] = (uint16_t)i;
			*last[letter] = (uint8_t)(w->count + 1);
			last[letter] = &w->next[w->count++];
			*last[letter] = 0;
		}
		inside = is;
	}
}

/* Finds `word`, in lower case, as a whole word in any case, from *at on; the offset
 * behind it. */
static bool
find_word(const struct words *w, const char *word, size_t *at)
{
	size_t n = strlen(word), k, i;

	for (k = w->first[word[0] - 'a']; k != 0; k = w->next[k - 1]) {
		i = w->start[k - 1];
		if (i < *at || i + n > w->len ||
		    strncasecmp(w->p + i, word, n) != 0)
			continue;
		if (i + n < w->len && word_char(w->p[i + n]) &&
		    word_char(word[n - 1]))
			continue;
		*at = i + n;
		return true;
	}
	return false;
}

/* Skips what may stand between a name and its value: quotes, one of : = [ (, and the
 * three dots of "Step... 100". */
static size_t
skip_to_value(const struct words *w, size_t i)
{
	size_t start = i;

	if (w->len - i > 4 && memcmp(w->p + i, "... ", 4) == 0)
		return i + 4;

	while (i < w->len && i - start < 12 && strchr(" \t'\":=[(", w->p[i]) &&
	    w->p[i] != '\0')
		i++;
	return i;
}

static bool
read_count(const struct words *w, size_t i, int64_t *value, size_t *end)
{
	int64_t v = 0;
	size_t start = i;

	while (i < w->len && isdigit((unsigned char)w->p[i]) && i - start < 15) {
		v = v * 10 + (w->p[i] - '0');
		i++;
		/* 18,250 */
		if (i + 3 < w->len && w->p[i] == ',' &&
		    isdigit((unsigned char)w->p[i + 1]) &&
		    isdigit((unsigned char)w->p[i + 2]) &&
		    isdigit((unsigned char)w->p[i + 3]) &&
		    (i + 4 == w->len || !isdigit((unsigned char)w->p[i + 4])))
			i++;
	}
	if (i == start)
		return false;
	if (i < w->len && (w->p[i] == 'k' || w->p[i] == 'K') &&
	    (i + 1 == w->len || !word_char(w->p[i + 1]))) {
		v *= 1000;
		i++;
	} else if (i < w->len && (word_char(w->p[i]) || (w->p[i] == '.' &&
	    i + 1 < w->len && isdigit((unsigned char)w->p[i + 1])))) {
		return false;		/* 12ms, 0.5, 3e-4 */
	}
	*value = v;
	*end = i;
	return true;
}

static bool
read_real(const struct words *w, size_t i, double *value)
{
	double v = 0, scale = 1;
	bool minus = false, any = false;
	int e = 0, sign = 1;
	size_t n;

	if (i < w->len && (w->p[i] == '-' || w->p[i] == '+'))
		minus = w->p[i++] == '-';
	if (w->len - i >= 3 && strncasecmp(w->p + i, "nan", 3) == 0) {
		*value = NAN;
		return true;
	}
	if (w->len - i >= 3 && strncasecmp(w->p + i, "inf", 3) == 0) {
		*value = minus ? -INFINITY : INFINITY;
		return true;
	}
	for (n = 0; i < w->len && isdigit((unsigned char)w->p[i]) && n < 300; i++, n++) {
		v = v * 10 + (w->p[i] - '0');
		any = true;
	}
	if (i < w->len && w->p[i] == '.')
		for (i++; i < w->len && isdigit((unsigned char)w->p[i]); i++) {
			scale /= 10;
			v += scale * (w->p[i] - '0');
			any = true;
		}
	if (!any)
		return false;
	if (i + 1 < w->len && (w->p[i] | 0x20) == 'e') {
		size_t k = i + 1;

		if (w->p[k] == '-' || w->p[k] == '+')
			sign = w->p[k++] == '-' ? -1 : 1;
		for (; k < w->len && isdigit((unsigned char)w->p[k]) && e < 1000; k++)
			e = e * 10 + (w->p[k] - '0');
		v *= pow(10, sign * e);
	}
	*value = minus ? -v : v;
	return true;
}

static bool
find_real(const struct words *w, const char *const *names, double *value)
{
	size_t at, i;

	for (; *names != NULL; names++)
		for (at = 0; find_word(w, *names, &at); ) {
			i = skip_to_value(w, at);
			if (i > at && read_real(w, i, value))
				return true;
		}
	return false;
}

static void
find_step(const struct words *w, struct progress *out)
{
	static const char *const names[] = {
		"iteration", "global_step", "global step", "num_updates", "step",
		"iter", "steps", "it", NULL
	};
	const char *const *name;
	size_t at, end;

	for (name = names; *name != NULL; name++) {
		for (at = 0; find_word(w, *name, &at); ) {
			size_t i = skip_to_value(w, at);

			if (i == at || !read_count(w, i, &out->step, &end))
				continue;
			while (end < w->len && w->p[end] == ' ')
				end++;
			if (end < w->len && w->p[end] == '/') {
				for (end++; end < w->len && w->p[end] == ' '; end++)
					;
				if (!read_count(w, end, &out->total, &end))
					out->total = -1;
			}
			return;
		}
	}
	out->step = -1;
}

static bool
find_text(const struct words *w, const char *text)
{
	return memmem(w->p, w->len, text, strlen(text)) != NULL;
}

/* It counts steps as "N/M" and does not call them so: a bar with its rate, an epoch,
 * MMEngine's "Iter(train) [  310/1000]", Swin's "Train: [0/300][10/1251]", Keras'
 * "12/100 [===>...] - ETA: 10s - loss: 0.5", Composer's "[batch=128/48000]:",
 * ColossalAI's "[100/1000] Loss:9.8". */
static bool
counts_steps(const struct words *w, const struct progress *p, bool rate)
{
	return rate || find_text(w, "Epoch") || find_text(w, "[batch=") ||
	    (p->has_loss && (find_text(w, "train") || find_text(w, "Train") ||
	    find_text(w, " - loss: ") || find_text(w, "] Loss:")));
}

/* torchtune: "1|100|Loss: 1.12: 100%|###| 12/12", epoch and step before the bar of
 * an epoch. */
static bool
find_between_bars(const struct words *w, struct progress *out)
{
	const char *bar = memchr(w->p, '|', w->len), *at = bar == NULL ? NULL :
	    memmem(bar, w->len - (size_t)(bar - w->p), "|Loss: ", 7);
	size_t end, i = at != NULL ? (size_t)(at - w->p) : 0, start = i;

	while (start > 0 && isdigit((unsigned char)w->p[start - 1]))
		start--;
	return start < i && start > 0 && w->p[start - 1] == '|' &&
	    read_count(w, start, &out->step, &end) && end == i;
}

/* What makes a step without a loss on its line one that was done: a gradient norm,
 * the words of DeepSpeed, Megatron and T5X, OLMo's "[step=100/557000,epoch=0]". */
static bool
is_done(const struct words *w)
{
	return find_text(w, "skipped=") || find_text(w, "/grad_norm") ||
	    find_text(w, "elapsed time per iteration") ||
	    find_text(w, "Training: step ") || find_text(w, "[step=");
}

/* "Epoch: [0][415/1736]" and " 12/1000 [00:10<01:00, 1.2it/s": N of the last
 * "N/M" that a bar or an epoch counts. */
static bool
find_bar(const struct words *w, struct progress *out)
{
	static const char *const not_steps[] = {
		"Loading", "loading", "Downloading", "download", "Preparing",
		"Map", "Tokeniz", "Generating", "shards", "examples/s", "Filter",
		"Fetching", "Extracting", "files", "B/s", "Validat", "Val:", "Eval",
		"Saving", "Converting", "Building", "Processing", NULL
	};
	const char *const *no;
	int64_t a, b;
	size_t i, end, start;
	double x;
	bool rate;

	if (memchr(w->p, '/', w->len) == NULL)
		return false;
	rate = find_text(w, "it/s") || find_text(w, "s/it");
	if (!counts_steps(w, out, rate))
		return false;
	for (no = not_steps; *no != NULL; no++)
		if (find_text(w, *no))
			return false;
	for (i = 1; i < w->len; i++) {
		if (w->p[i] != '/' || !isdigit((unsigned char)w->p[i - 1]))
			continue;
		for (start = i; start > 0 && isdigit((unsigned char)w->p[start - 1]);)
			start--;
		if (start > 0 && (word_char(w->p[start - 1]) ||
		    w->p[start - 1] == '.' || w->p[start - 1] == '/'))
			continue;
		if (!read_count(w, start, &a, &end) || end != i ||
		    !read_count(w, i + 1, &b, &end) || b < a)
			continue;
		if (end < w->len && strchr(" ]|)", w->p[end]) == NULL)
			continue;
		out->step = a;
		out->total = b;
	}
	if (out->step < 0)
		return false;
	for (i = 1; i + 4 <= w->len; i++) {
		bool per_step = memcmp(w->p + i, "s/it", 4) == 0;

		if (!per_step && memcmp(w->p + i, "it/s", 4) != 0)
			continue;
		for (start = i; start > 0 && (isdigit((unsigned char)w->p[start - 1]) ||
		    w->p[start - 1] == '.');)
			start--;
		if (start < i && read_real(w, start, &x) && x > 0) {
			out->step_ms = per_step ? x * 1000 : 1000 / x;
			out->has_step_ms = true;
		}
	}
	out->bar = rate;
	return true;
}

bool
progress_parse(const char *line, size_t len, struct progress *out)
{
	static const char *const losses[] = {
		"lm loss", "train_loss", "train loss", "training loss",
		"reduced_train_loss", "loss", "total_loss", NULL
	};
	static const char *const norms[] = {
		"grad norm", "grad_norm", "gnorm", "gradient norm", NULL
	};
	static const char *const times[] = {
		"elapsed time per iteration (ms)", "iter_time", "step_time", "time",
		"iteration_time", NULL
	};
	struct words w = { .p = line, .len = len < LOOK_MAX ? len : LOOK_MAX };
	bool bar = false;

	*out = (struct progress){ .step = -1, .total = -1, .loss = NAN,
	    .grad_norm = NAN, .step_ms = NAN };
	if (w.len < 6)
		return false;
	find_starts(&w);
	out->has_loss = find_real(&w, losses, &out->loss);
	find_step(&w, out);
	if (out->step < 0)
		bar = find_between_bars(&w, out) || find_bar(&w, out);
	if (out->step >= 0 && !out->has_loss && !bar && !is_done(&w))
		return false;
	if (out->step < 0 && (!out->has_loss || (!find_text(&w, "'loss'") &&
	    !find_text(&w, "Progress on:train"))))
		return false;
	out->has_grad_norm = find_real(&w, norms, &out->grad_norm);
	if (!out->has_step_ms)
		out->has_step_ms = find_real(&w, times, &out->step_ms);
	return true;
}
