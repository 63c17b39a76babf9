/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - the checkpoint formats as rows of one table (formats.c).
 *
 * A file format checks one file.  A folder format says which files a checkpoint
 * folder must hold; those are then checked by their file formats.  A format file
 * ends in a const struct format and needs a row in formats.c, nothing else.
 */
#ifndef HOLDFAST_CHECKPOINT_FORMAT_H
#define HOLDFAST_CHECKPOINT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "checkpoint/input.h"
#include "checkpoint/names.h"
#include "checkpoint/pass.h"
#include "checkpoint/report.h"

#define FORMAT_HEAD_MAX		64

/* A path looked at once. */
struct item {
	const char	*path;		/* borrowed */
	const char	*name;		/* its last component */
	bool		 is_dir;
	bool		 is_regular;
	uint64_t	 size;
	uint8_t		 head[FORMAT_HEAD_MAX];
	size_t		 head_len;
	struct names	 names;		/* of a folder, sorted */
	int		 depth;		/* of checkpoint folders around it */
};

/* How a file is to be checked, and the room to do it in (one per thread). */
struct check {
	bool		 structure_only;
	uint8_t		*block;		/* PASS_BLOCK bytes */
	struct crew	*crew;		/* threads that may help; may be NULL */
	bool		 keep;		/* the digests go to the part */
	struct pass_digests *digests;	/* to be found along; may be NULL */
	/* told the bytes of tensor data read so far; may be NULL */
	void		(*progress)(void *arg, uint64_t bytes);
	void		*progress_arg;
};

/* One part of a file that holds an archive of its own. */
struct extent {
	uint64_t	offset, length;
	bool		tensor;		/* not just any bytes */
};

/* A file that belongs to a checkpoint. */
struct part {
	char			*path;		/* owned */
	char			*name;		/* as said in reasons; owned */
	const struct format	*format;	/* NULL: recognised by content */
	struct extent		*extents;	/* owned; NULL: the file as a whole */
	size_t			 n_extents;
	bool			 any_content;	/* need not be a checkpoint file */
	/* what was found when all of it was read, if that was asked for */
	struct pass_digests	 kept;		/* chunks owned; done: it is set */
	uint64_t		 kept_size;
	int64_t			 kept_mtime_ns;
};

struct parts {
	struct part	*list;
	size_t		 n, cap;
	bool		 failed;	/* memory was short: some are missing */
	bool		 counted;	/* the files tell how many there are */
};

struct format {
	const char	*name;
	/* by content, never by name alone */
	bool		(*recognise)(const struct item *);
	/* file format: checks the file; says what it finds */
	void		(*check)(struct input *, const struct check *,
			    struct report *);
	/* folder format: says what is missing, adds the files to check */
	void		(*complete)(const struct item *, struct parts *,
			    struct report *);
	/* save directory whose checkpoints do not simply lie in it: adds their
	 * paths relative to it to out; -1 when memory is short; NULL for most */
	int		(*enumerate)(const char *dir, const struct names *in,
			    struct names *out);
	/* folder format: its files tell a step, and it must be the same one */
	bool		same_step;
	/* folder format without an expected set of its own: it should hold what the
	 * checkpoint before it holds */
	bool		same_files;
	/* the same for kinds of files (numbers in the name apart) only, where the
	 * files tell how many there are */
	bool		same_kinds;
	/* the step in its name is the one its files tell, or something is wrong */
	bool		named_step;
	/* folder format: what makes it whole is written last */
	bool		marked;
	/* folder format: may be a part of a larger one */
	bool		inside;
	/* not a folder: the set of files that a file belongs to; complete() is
	 * called for it, and the files are checked by their own formats */
	bool		file_set;
};

extern const struct format format_torch_zip, format_torch_legacy,
    format_safetensors, format_dcp, format_megatron_dist, format_nemo,
    format_hf_trainer, format_deepspeed, format_megatron_legacy,
    format_internevo, format_orbax, format_folder, format_accelerate,
    format_hf_model, format_deepspeed_universal, format_lightning,
    format_fairseq, format_nvrx, format_snapshot, format_manifest,
    format_pickle;

/* Looks at a path: kind, size, first bytes, names inside.  Returns 0, or -1 with
 * the reason said.  item_fini() in both cases. */
int	item_look(struct item *, const char *path, struct report *);
void	item_fini(struct item *);

/* The format of a file or folder, NULL when not recognised. */
const struct format *format_find(const struct item *);

/* As format_find() for folders inside a checkpoint folder. */
const struct format *format_find_inside(const struct item *);
/* The format of the set that a file belongs to, NULL when it stands alone. */
const struct format *format_find_set(const struct item *);

/* Of a save directory whose checkpoints do not simply lie in it: replaces the
 * names in it by those of the checkpoints, relative to it.  0, or -1 when memory is
 * short. */
int	formats_enumerate(const char *dir, struct names *);

/* Says why a file that no format recognised is none, as far as its name claims
 * that it is one; returns the format it claims, or NULL. */
const struct format *format_claimed(const struct item *, struct report *);

/* Adds dir/name to the parts; NULL when memory is short. */
struct part *parts_add(struct parts *, const char *dir, const char *name);
void	parts_remove(struct parts *, size_t i);
void	parts_fini(struct parts *);

/* torch.save archives inside a file, one behind the other (a .distcp file). */
void	torch_zip_check_extents(struct input *, const struct extent *, size_t n,
	    const struct check *, struct report *);

#endif
