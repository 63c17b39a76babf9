/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diagnose_entity.c - processes, paths, adapters and GPUs that lines name.
 */
#include <string.h>

#include "diagnose/entity.h"
#include "unit.h"

struct row {
	const char	*line;
	int		 pid;
	const char	*path, *nic, *gpu;
};

static const struct row rows[] = {
	{ "Out of memory: Killed process 81 (python3)", 81, "", "", "" },
	{ "failed (exitcode: -9) local_rank: 0 (pid: 81) of binary: /usr/bin/python3", 81,
	  "/usr/bin/python3", "", "" },
	{ "Signal 9 (SIGKILL) received by PID 81", 81, "", "", "" },
	{ "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=x", -1, "", "",
	  "0000:3b:00" },
	{ "NVRM: Xid (PCI:0000:3b:00): 79, pid=81, name=x", 81, "", "", "0000:3b:00" },
	{ "nvidia 0000:3b:00.0: AER", -1, "", "", "0000:3b:00.0" },
	{ "pcieport 3b:00.0: AER", -1, "", "", "3b:00.0" },
	{ "rapid81 pidgin 3", -1, "", "", "" },
	{ "No such file or directory: '/data/a b.bin'", -1, "/data/a", "", "" },
	{ "No such file or directory: '/data/run-3/a.bin'", -1, "/data/run-3/a.bin", "",
	  "" },
	{ "cannot open /data/x.pt, giving up", -1, "/data/x.pt", "", "" },
	{ "at https://example.com/a/b", -1, "", "", "" },
	{ "'https://example.com/a/b'", -1, "", "", "" },
	{ "NET/IB : mlx5_3:1 Got async event", -1, "", "mlx5_3", "" },
	{ "ib0: link down", -1, "", "ib0", "" },
	{ "method of calib0", -1, "", "", "" },
	{ "CUDA out of memory. GPU 3 has a total", -1, "", "", "3" },
	{ "Exception on cuda:11", -1, "", "", "11" },
	{ "took 03:12:41.5 in all", -1, "", "", "" },
	{ "", -1, "", "", "" },
};

START_TEST(things_are_found)
{
	const struct row *row = &rows[_i];
	size_t n = strlen(row->line);
	char out[40];

	ck_assert_msg(entity_pid(row->line, n) == row->pid, "'%s': pid %d",
	    row->line, entity_pid(row->line, n));
	entity_path(row->line, n, out, sizeof(out));
	ck_assert_msg(strcmp(out, row->path) == 0, "'%s': path '%s'", row->line,
	    out);
	entity_nic(row->line, n, out, sizeof(out));
	ck_assert_msg(strcmp(out, row->nic) == 0, "'%s': nic '%s'", row->line, out);
	entity_gpu(row->line, n, out, sizeof(out));
	ck_assert_msg(strcmp(out, row->gpu) == 0, "'%s': gpu '%s'", row->line, out);
}
END_TEST

static void
add(TCase *t)
{
	tcase_add_loop_test(t, things_are_found, 0,
	    (int)(sizeof(rows) / sizeof(rows[0])));
}

int
main(void)
{
	return unit_run("diagnose/entity", add);
}
