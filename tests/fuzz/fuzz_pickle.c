/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pickle.c - any bytes as a pickle, then as the pickle of a torch.save file.
 */
#include "checkpoint/torch.h"

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct torch_model model;
	struct pickle pickle;
	struct report report;

	report_init(&report);
	if (pickle_read(&pickle, data, size, NULL) == PICKLE_OK) {
		(void)torch_collect(&model, &pickle, &report);
		torch_free(&model);
	}
	pickle_free(&pickle);
	report_fini(&report);
	return 0;
}
