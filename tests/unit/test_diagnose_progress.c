/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_progress.c - step lines of the usual trainers, and lines that
 * only look like one.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/progress.h"

struct row {
	const char	*line;
	long long	 step;		/* -2: no progress */
	double		 loss;		/* -1: none */
	double		 step_ms;	/* -1: none */
};

static const struct row rows[] = {
	{ " iteration      100/    1000 | consumed samples:  6400 | elapsed time per "
	  "iteration (ms): 312.5 | learning rate: 1.0E-05 | lm loss: 7.33E+00 | "
	  "loss scale: 1.0 | grad norm: 0.512 |", 100, 7.33, 312.5 },
	{ "[2026-01-31 03:12:41,641] [INFO] [logging.py:68:log_dist] [Rank 0] "
	  "step=2500, skipped=0, lr=[0.05], mom=[(0.9, 0.999)]", 2500, -1, -1 },
	{ "{'loss': 1.25, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': 0.1}",
	  -1, 1.25, -1 },
	{ "step: 10  loss: 7.1234  memory: 12.3GiB(13%)", 10, 7.1234, -1 },
	{ "iter 100: loss 2.3456, time 12.5ms, mfu 3.2%", 100, 2.3456, 12.5 },
	{ "step 7 loss 0.5", 7, 0.5, -1 },
	{ "12: step 7 loss 0.5", 7, 0.5, -1 },
	{ "step 7 loss nan", 7, NAN, -1 },
	{ "step 7 loss inf", 7, INFINITY, -1 },
	{ " 12%|##   | 12/100 [00:10<01:00,  2.00it/s, loss=1.5]", 12, 1.5, 500 },
	{ " 12%|##   | 12/100 [00:10<01:00,  2.50s/it]", 12, -1, 2500 },
	{ "Epoch 0:  16%|#  | 73/404 [13:43<36:00,  6.44s/it, train_loss: 0.084]",
	  73, 0.084, 6440 },
	{ "Epoch: [0][415/1736]\t Loss 0.5844 MAE 0.6568", 415, 0.5844, -1 },
	{ "| epoch 027 | loss 6.343 | num_updates 11181 | lr 0.0006 | gnorm 0.39",
	  11181, 6.343, -1 },
	{ "Training epoch 0, iteration 5/99 | lr: 1e-4 | reduced_train_loss: 10.4 | "
	  "train_step_timing in s: 0.5", 5, 10.4, -1 },
	{ "step 18,250 loss 2.5", 18250, 2.5, -1 },
	{ "Step: 424k | Loss: 0.2836", 424000, 0.2836, -1 },
	/* counted, and not called steps */
	{ "2026/01/31 03:12:41 - mmengine - INFO - Iter(train) [  310/120460]  lr: "
	  "3.3e-05  eta: 1 day, 4:29:39  time: 2.9128  memory: 15266  loss: 4.1693",
	  310, 4.1693, -1 },
	{ "2026/01/31 03:12:41 - mmengine - INFO - Epoch(train)  [1][  50/1000]  lr: "
	  "1e-05  loss: 4.5", 50, 4.5, -1 },
	{ "2026-01-31 03:12:41,641 - mmdet - INFO - Epoch [1][50/7330]\tlr: 1.9e-03, "
	  "eta: 10:12:01, loss: 1.25", 50, 1.25, -1 },
	{ "[2026-01-31 03:12:41 swin] (main.py 213): INFO Train: [0/300][10/1251]\teta "
	  "0:50:00 lr 0.000002\t time 0.5 (0.6)\tloss 6.9 (7.0)", 10, 6.9, -1 },
	{ "[batch=128/48000]:", 128, -1, -1 },
	{ " 12/100 [==>...........] - ETA: 10s - loss: 0.5", 12, 0.5, -1 },
	{ "Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.3", 640, 2.3, -1 },
	{ "step:100 - actor/pg_loss:-0.0112 - actor/grad_norm:0.31", 100, -1, -1 },
	{ "I0131 03:12:41.451247 140641718562816 trainer.py:501] Training: step 198",
	  198, -1, -1 },
	{ "I 2026-01-31 03:12:41,112 levanter.tracker Progress on:train 1.20kit/50.0kit "
	  "rate:1.1it/s remaining:12:11:10 postfix:loss=3.5", -1, 3.5, -1 },
	{ "2026-01-31 03:12:41.100 n7:0 olmo.train:1141 INFO [step=100/557000,epoch=0]",
	  100, -1, -1 },
	{ "1|100|Loss: 1.125: 100%|#| 12/12 [00:10<00:00,  2.00it/s]", 100, 1.125, -1 },
	{ "Step... 100 | Loss: 2.25, Learning Rate: 0.0001", 100, 2.25, -1 },
	{ "[01/31/26 03:12:41] INFO     colossalai - INFO: [100/1000] Loss:9.75, Step "
	  "time: 1.2s", 100, 9.75, -1 },
	{ "completed step: 12, seconds: 1.2, TFLOP/s/device: 110.5, loss: 9.25", 12,
	  9.25, -1 },
	{ "2026/01/31 03:12:41 - mmengine - INFO - Iter(val) [  310/500]  eta: 0:10:00",
	  -2, -1, -1 },
	{ "copied 12/100 files of the training set", -2, -1, -1 },
	{ "saving checkpoint at step 100", -2, -1, -1 },
	{ "iteration", -2, -1, -1 },
	{ "the loss of power at node 3", -2, -1, -1 },
	{ "Loading checkpoint shards:  50%|##  | 1/2 [00:01<00:01,  1.1s/it]", -2,
	  -1, -1 },
	{ "model.safetensors:   3%|#  | 25.3M/988M [02:05<1:19:46, 201kB/s]", -2,
	  -1, -1 },
	{ "Caught signal at step 3 of shutdown", -2, -1, -1 },
	{ "lr=0.1 momentum=0.9", -2, -1, -1 },
	{ "", -2, -1, -1 },
};

static bool
same(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return a == b || fabs(a - b) < 1e-9 * fabs(b);
}

START_TEST(lines_are_recognised)
{
	const struct row *row = &rows[_i];
	struct progress p;
	bool yes = progress_parse(row->line, strlen(row->line), &p);

	ck_assert_msg(yes == (row->step != -2), "'%s': %d", row->line, yes);
	if (!yes)
		return;
	ck_assert_msg(p.step == row->step, "'%s': step %lld", row->line,
	    (long long)p.step);
	ck_assert_msg(p.has_loss == (row->loss != -1), "'%s': loss", row->line);
	if (p.has_loss)
		ck_assert_msg(same(p.loss, row->loss), "'%s': loss %g",
		    row->line, p.loss);
	if (row->step_ms != -1)
		ck_assert_msg(p.has_step_ms && same(p.step_ms, row->step_ms),
		    "'%s': %g ms", row->line, p.step_ms);
}
END_TEST

START_TEST(cut_lines_are_safe)
{
	size_t n = strlen(rows[_i].line), i;
	struct progress p;

	for (i = 0; i <= n; i++) {
		char *data = malloc(i ? i : 1);

		memcpy(data, rows[_i].line, i);
		(void)progress_parse(data, i, &p);
		free(data);
	}
}
END_TEST

START_TEST(other_values)
{
	static const char a[] = "iteration 5/ 10 | lm loss: 1.0 | grad norm: 2.5 |";
	struct progress p;

	ck_assert(progress_parse(a, strlen(a), &p));
	ck_assert_int_eq(p.total, 10);
	ck_assert(p.has_grad_norm && same(p.grad_norm, 2.5));
	ck_assert(!p.bar);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("diagnose_progress");
	TCase *t = tcase_create("all");
	int failed, n = (int)(sizeof(rows) / sizeof(rows[0]));
	SRunner *r;

	tcase_add_loop_test(t, lines_are_recognised, 0, n);
	tcase_add_loop_test(t, cut_lines_are_safe, 0, n);
	tcase_add_test(t, other_values);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
