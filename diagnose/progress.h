/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - recognises the line a trainer prints for a completed step.
 *
 * Styles: Megatron and NeMo ("iteration 100/ 1000 | ... lm loss: 1.2E+00 |"),
 * DeepSpeed ("step=10, skipped=0, lr=..."), Hugging Face Trainer ("{'loss': 1.2,
 * ...}"), tqdm and Lightning bars, torchtitan ("step: 10  loss: 7.1"), nanoGPT
 * ("iter 100: loss 2.3, time 12ms"), fairseq, and plain "step N loss X".
 */
#ifndef HOLDFAST_DIAGNOSE_PROGRESS_H
#define HOLDFAST_DIAGNOSE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
	int64_t	step;		/* -1 when the line does not say */
	int64_t	total;		/* -1 */
	double	loss;		/* NAN with has_loss false when absent */
	double	grad_norm;
	double	step_ms;
	bool	has_loss;	/* loss may be NaN or infinite itself */
	bool	has_grad_norm;
	bool	has_step_ms;
	bool	bar;		/* a progress bar: counts something, maybe steps */
};

/* The line may have its prefixes or not.  False when it is no progress. */
bool	progress_parse(const char *line, size_t len, struct progress *out);

#endif
