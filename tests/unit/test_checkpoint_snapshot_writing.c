/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint_snapshot_writing.c - the files of snapshots with each call that writes
 * failing: a checkpoint is there as a whole or not at all, the reason is told, and what
 * may pass is waited for.
 */
#include <sys/mman.h>

#include "common/clock.h"
#include "checkpoint/holdfast-checkpoint.h"
#include "checkpoint/snapshot_publish.h"
#include "writing_faults.h"

#define AREA_BYTES	8192
#define TABLE_AT	4096

/* What a rank committed: a step, and one tensor. */
static struct {
	int			fd;
	struct snapshot_message	commit;
} area;

static void
make_area(int64_t step)
{
	static const float data[4] = { 1, 2, 3, 4 };
	static const uint64_t shape = 4;
	struct torch_entry e = { .kind = TORCH_TENSOR, .name = "w", .name_len = 1,
	    .dtype = HOLDFAST_CHECKPOINT_F32, .ndim = 1, .shape = &shape,
	    .data = data, .bytes = sizeof(data) };
	struct torch_entry i = { .kind = TORCH_INT, .name = "step", .name_len = 4,
	    .integer = step };
	struct buf table = {0};

	ck_assert_int_ne(area.fd = memfd_create("area", MFD_CLOEXEC), -1);
	ck_assert_int_eq(ftruncate(area.fd, AREA_BYTES), 0);
	ck_assert_int_eq(snapshot_table_add(&table, &e, 0), 0);
	ck_assert_int_eq(snapshot_table_add(&table, &i, 0), 0);
	ck_assert_int_eq(pwrite(area.fd, data, sizeof(data), 0), sizeof(data));
	ck_assert_int_eq(pwrite(area.fd, table.data, table.len, TABLE_AT),
	    (ssize_t)table.len);
	area.commit = (struct snapshot_message){ .entries = 2,
	    .table_offset = TABLE_AT, .table_bytes = table.len };
	buf_fini(&table);
}

static struct snapshot_place
place(int64_t step, uint32_t rank, uint32_t world)
{
	return (struct snapshot_place){ .dir = to, .step = step, .rank = rank,
	    .world = world, .attempt = 1, .writer = 1 };
}

static enum snapshot_outcome
save(struct snapshot_place *p, struct err *err)
{
	enum snapshot_outcome o;

	make_area(p->step);
	o = snapshot_write(p, &area.commit, area.fd, AREA_BYTES, NULL, err);
	close(area.fd);
	return o;
}

/* As a server does it, until something else comes of it. */
static enum snapshot_outcome
look_again(struct snapshot_place *p, enum snapshot_outcome o, struct err *err)
{
	int i;

	for (i = 0; i < 3 && o == SNAPSHOT_WAITING; i++)
		o = snapshot_join(p, err);
	return o;
}

static bool
is_there(enum snapshot_outcome o)
{
	return o == SNAPSHOT_DURABLE || o == SNAPSHOT_JOINED;
}

static bool
snapshot_alone_fails(long k, int which)
{
	struct snapshot_place p, again;
	enum snapshot_outcome o;
	struct err err = {0};
	const char *what;
	bool reached;

	new_dirs();
	p = place(10, 0, 1);
	make_area(10);
	set_fault(k, which);
	o = snapshot_write(&p, &area.commit, area.fd, AREA_BYTES, NULL, &err);
	reached = end_fault();
	close(area.fd);
	what = fault_name(k);
	ck_assert_msg(o == SNAPSHOT_DURABLE || (o == SNAPSHOT_LOST &&
	    strstr(err.text, strerror(fault.errnum)) != NULL), "%s: %d, %s", what,
	    (int)o, err.text);
	ck_assert_msg(o != SNAPSHOT_DURABLE || !unsynced[0], "%s: not synced", what);
	ck_assert_msg(is_whole(to, "step00000010.pt", 10) ||
	    (o == SNAPSHOT_LOST && !has(to, "step00000010.pt")), "%s", what);
	again = place(10, 0, 1);
	ck_assert_int_eq(save(&again, &err), SNAPSHOT_DURABLE);
	ck_assert_msg(is_whole(to, "step00000010.pt", 10), "%s", what);
	ck_assert_msg(fault.stays || unit_count(to) == 1, "%s: %d files", what,
	    unit_count(to));
	snapshot_clear_left(to);
	ck_assert_msg(unit_count(to) == 1, "%s: %d files", what, unit_count(to));
	snapshot_place_fini(&p);
	snapshot_place_fini(&again);
	old_dirs();
	return reached;
}

/* The call fails for the last of two ranks. */
static bool
snapshot_of_two_fails(long k, int which)
{
	struct snapshot_place a, b, more[2];
	enum snapshot_outcome o, first;
	struct err err = {0}, other = {0};
	const char *what;
	bool reached;

	new_dirs();
	a = place(10, 0, 2);
	b = place(10, 1, 2);
	ck_assert_int_eq(save(&a, &other), SNAPSHOT_WAITING);
	make_area(10);
	set_fault(k, which);
	o = snapshot_write(&b, &area.commit, area.fd, AREA_BYTES, NULL, &err);
	reached = end_fault();
	close(area.fd);
	what = fault_name(k);
	ck_assert_msg(is_there(o) ? !unsynced[0] :
	    (o == SNAPSHOT_LOST || o == SNAPSHOT_WAITING) &&
	    strstr(err.text, strerror(fault.errnum)) != NULL, "%s: %d, %s", what,
	    (int)o, err.text);
	ck_assert_msg(is_whole(to, "step00000010", 10) ||
	    !has(to, "step00000010"), "%s", what);
	/* what waits for the store completes */
	ck_assert_msg(o != SNAPSHOT_WAITING ||
	    (o = look_again(&b, o, &err)) == SNAPSHOT_DURABLE, "%s: %s", what,
	    err.text);
	first = look_again(&a, SNAPSHOT_WAITING, &other);
	ck_assert_msg(is_there(o) ? is_there(first) && !unsynced[0] &&
	    is_whole(to, "step00000010", 10) : first == SNAPSHOT_WAITING,
	    "%s: %d after %d", what, (int)first, (int)o);
	more[0] = place(20, 0, 2);
	more[1] = place(20, 1, 2);
	ck_assert_int_eq(save(&more[0], &err), SNAPSHOT_WAITING);
	ck_assert_int_eq(save(&more[1], &err), SNAPSHOT_DURABLE);
	ck_assert_int_eq(look_again(&more[0], SNAPSHOT_WAITING, &err),
	    SNAPSHOT_JOINED);
	ck_assert_msg(is_whole(to, "step00000020", 20), "%s", what);
	ck_assert_int_eq(unit_count(to), is_there(o) ? 2 : 1);
	snapshot_place_fini(&a);
	snapshot_place_fini(&b);
	snapshot_place_fini(&more[0]);
	snapshot_place_fini(&more[1]);
	old_dirs();
	return reached;
}

START_TEST(snapshots)
{
	long k;

	for (k = 0; snapshot_alone_fails(k, _i); k++)
		;
	ck_assert_int_gt(k, 5);
	for (k = 0; snapshot_of_two_fails(k, _i); k++)
		;
	ck_assert_int_gt(k, 8);
}
END_TEST

#define FOLDER	".step00000010.incoming-1"

/* A folder that cannot be read for a moment lacks no ranks. */
START_TEST(storage_that_recovers)
{
	struct snapshot_place a, b;
	enum snapshot_outcome o;
	struct err err = {0};
	bool reached = true;
	long k;

	for (k = 0; reached; k++) {
		new_dirs();
		a = place(10, 0, 2);
		b = place(10, 1, 2);
		ck_assert_int_eq(save(&a, &err), SNAPSHOT_WAITING);
		ck_assert_int_eq(b.failing_ns, 0);
		err.text[0] = '\0';
		set_read_fault(to, FOLDER, k, EIO);
		o = save(&b, &err);
		reached = end_read_fault();
		if (o == SNAPSHOT_WAITING) {
			ck_assert_ptr_nonnull(strstr(err.text, strerror(EIO)));
			ck_assert_int_ne(b.failing_ns, 0);
			o = snapshot_join(&b, &err);
		}
		ck_assert_msg(o == SNAPSHOT_DURABLE, "%s: %d, %s", fault_name(k),
		    (int)o, err.text);
		ck_assert_int_eq(snapshot_join(&a, &err), SNAPSHOT_JOINED);
		ck_assert(is_whole(to, "step00000010", 10));
		snapshot_place_fini(&a);
		snapshot_place_fini(&b);
		old_dirs();
	}
	ck_assert_int_gt(k, 2);
}
END_TEST

/* Nor is it waited for without end; what is whole stays for the others. */
START_TEST(storage_that_does_not)
{
	struct snapshot_place a, b;
	struct err err = {0};

	new_dirs();
	a = place(10, 0, 2);
	b = place(10, 1, 2);
	ck_assert_int_eq(save(&a, &err), SNAPSHOT_WAITING);
	set_read_fault(to, FOLDER, ALWAYS, EACCES);
	ck_assert_int_eq(save(&b, &err), SNAPSHOT_WAITING);
	ck_assert_int_eq(snapshot_join(&b, &err), SNAPSHOT_WAITING);
	b.failing_ns -= (SNAPSHOT_PATIENCE_MS + 1) * NS_PER_MS;
	err.text[0] = '\0';
	ck_assert_int_eq(snapshot_join(&b, &err), SNAPSHOT_LOST);
	ck_assert_ptr_nonnull(strstr(err.text, strerror(EACCES)));
	ck_assert(end_read_fault());
	ck_assert_int_eq(snapshot_join(&a, &err), SNAPSHOT_DURABLE);
	ck_assert(is_whole(to, "step00000010", 10));
	snapshot_place_fini(&a);
	snapshot_place_fini(&b);
	old_dirs();
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_loop_test(t, snapshots, 0, N_FAULTS);
	tcase_add_test(t, storage_that_recovers);
	tcase_add_test(t, storage_that_does_not);
}

int
main(void)
{
	return unit_run("checkpoint_snapshot_writing", add_tests);
}
