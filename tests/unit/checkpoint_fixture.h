/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_fixture.h - writes small checkpoints, right ones and every kind of wrong
 * one, for the tests of checkpoint/.
 */
#ifndef HOLDFAST_TESTS_CHECKPOINT_FIXTURE_H
#define HOLDFAST_TESTS_CHECKPOINT_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "checkpoint/checkpoint.h"

/* A tensor of one dimension that is all of its storage. */
struct fixture_tensor {
	const char	*name;
	const char	*storage;	/* "FloatStorage" */
	const void	*data;
	size_t		 size;		/* bytes */
	long		 numel;
};

/* As torch.save pickles {"step": step, "model": {name: tensor, ...}}; step -1: no
 * such key.  Storage keys are 0, 1, 2 ... */
void	fixture_pickle(struct buf *, const struct fixture_tensor *, size_t n,
	    long step);

struct fixture_record {
	const char	*name;
	const void	*data;
	size_t		 size;
	bool		 skip;		/* leave it out of the archive */
};

struct fixture_zip {
	bool	no_descriptor;	/* sizes and CRC in the local header */
	bool	zip64;		/* zip64 extra in local headers, 24-byte descriptors */
	bool	no_end64;	/* a plain end record only */
	bool	no_crc;
	bool	deflate;
	size_t	align;		/* of the data; 0: none */
	size_t	hole;		/* bytes between first and second record */
};

/* An archive of these records; where each one's data starts goes to at[n] unless it
 * is NULL. */
void	fixture_zip(struct buf *, const struct fixture_record *, size_t n,
	    const struct fixture_zip *, size_t *at);

/* As torch.save writes it: archive/data.pkl, archive/data/K, archive/version. */
void	fixture_torch(struct buf *, const struct fixture_tensor *, size_t n,
	    long step, const struct fixture_zip *, size_t *at);

/* A temporary directory, and what is in it. */
char	*fixture_dir(void);
void	fixture_remove(char *dir);		/* all of it; frees dir */
/* dir/name, to be freed */
char	*fixture_path(const char *dir, const char *name);
void	fixture_write(const char *path, const void *data, size_t len);
void	fixture_text(const char *dir, const char *name, const char *text);
bool	fixture_has(const char *dir, const char *name);
/* dir/name holds exactly this; "" an empty file. */
void	fixture_expect_text(const char *dir, const char *name, const char *want);
/* A valid torch.save file of one small tensor. */
void	fixture_good(const char *path, long step);

/* A safetensors file of one tensor of four values. */
void	fixture_safetensors(const char *path, const char *tensor);

/* A torch.save file of the object that a pickle of protocol 0 (text) makes. */
void	fixture_object(const char *path, const char *pickle);
/* Makes the directories above path/. */
void	fixture_mkdirs(const char *path);

/* Two pieces of one tensor in __0_0.distcp and __1_0.distcp of the folder, with
 * .metadata. */
void	fixture_dcp(const char *dir);
/* .metadata alone: `pieces` of two such files are known. */
void	fixture_dcp_metadata(const char *dir, size_t length, int pieces);

/* Looks at a path and checks it; the caller finishes it. */
void	fixture_check(struct checkpoint *, const char *path,
	    bool structure_only);
/* The state alone; text (may be NULL) gets the reason. */
enum holdfast_checkpoint_state fixture_state(const char *path, char *text,
	    size_t size);

#endif
