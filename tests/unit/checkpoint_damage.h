/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_damage.h - for the tests of the folder formats: makes checkpoints in one
 * temporary directory, damages them in every way, and says what must come of it.
 * Names are relative to that directory.
 */
#ifndef HOLDFAST_TESTS_CHECKPOINT_DAMAGE_H
#define HOLDFAST_TESTS_CHECKPOINT_DAMAGE_H

#include "checkpoint_fixture.h"

void	damage_set_up(void);
void	damage_tear_down(void);
/* The path of a name; valid until three more are asked for. */
const char *damage_at(const char *name);

void	damage_folder(const char *name);
void	damage_bytes(const char *name, const char *data);
/* A torch.save file, and one of an object in a pickle of protocol 0. */
void	damage_good(const char *name);
void	damage_object(const char *name, const char *pickle);

/* The state of a checkpoint, and a part of the reason. */
void	damage_expect(const char *name, enum holdfast_checkpoint_state state,
	    const char *reason);
void	damage_valid(const char *name);
void	damage_incomplete(const char *name, const char *reason);

/* Each kind of damage to one file of a checkpoint (empty, cut, zeroes, a folder, a
 * FIFO, a link to itself) makes it anything but valid; afterwards it is as before. */
void	damage_each(const char *checkpoint, const char *name);
/* Without that file or folder it is incomplete; afterwards it is as before. */
void	damage_gone(const char *checkpoint, const char *name,
	    const char *reason);
/* The newest valid one of a save directory. */
void	damage_newest(const char *dir, const char *want);

#endif
