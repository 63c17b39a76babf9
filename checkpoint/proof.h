/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.h - a checkpoint against its manifest, while it is checked.
 *
 * Decides between three cases: the files are those that the manifest knows; some of
 * them are not (the checkpoint is damaged or mixed); or all were saved anew since, and
 * the manifest speaks of a checkpoint that is gone.
 */
#ifndef HOLDFAST_CHECKPOINT_PROOF_H
#define HOLDFAST_CHECKPOINT_PROOF_H

#include "checkpoint/manifest.h"

/* One file against its entry. */
struct proof_file {
	const struct manifest_file *entry;	/* NULL: not in the manifest */
	bool		 looked_at;
	bool		 missing, other_size, differs;
	bool		 newer;		/* written after what the manifest knows */
	bool		 wholly;	/* most of its chunks differ */
	bool		 zeroed;	/* one that differs is all zeroes */
	uint64_t	 size;
	uint64_t	 from, to;	/* the first bytes that differ */
};

struct proof {
	enum manifest_found	 found;
	struct manifest		 m;
	struct parts		 extra;		/* its files that are no parts */
	struct names		 names;		/* regular files in the folder */
	char			*why;		/* unusable; owned */
	bool			 unreadable;	/* not unusable by itself */
	bool			 stands;
};

/* Reads the manifest of c, if there is one.  -1 when memory is short; proof_fini() in
 * both cases. */
int	proof_load(struct proof *, const struct checkpoint *c);
void	proof_fini(struct proof *);

/* The path of a part in a manifest: a lone file goes by its last component. */
const char *proof_path(const struct checkpoint *, const struct part *);

/* What the manifest knows of a part, or NULL. */
const struct manifest_file *proof_entry(const struct proof *,
	    const struct checkpoint *, const struct part *);

/* The entry is a regular file below the folder, without a link on the way: only such
 * are opened on a manifest's word. */
bool	proof_is_there(const struct proof *, const struct manifest_file *);

/* Compares a file that is open; its chunks when digests are done. */
void	proof_compare(struct proof_file *, const struct input *,
	    const struct pass_digests *, const struct check *);

/* The verdict over all n files (parts, then extra ones), which goes to the report. */
void	proof_conclude(const struct proof *, struct checkpoint *,
	    const struct proof_file *files, size_t n, bool structure_only);

#endif
