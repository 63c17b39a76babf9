/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quarantine.h - moves broken checkpoints out of the save directory, and back.
 *
 * The quarantine of SAVEDIR is SAVEDIR.quarantine beside it: outside, because
 * frameworks would load or count what lies inside, and on the same file system,
 * so that one rename moves a checkpoint whole or not at all (beside.h).  NAME.json
 * beside NAME says where it was and why it was moved.  Nothing is ever deleted.
 */
#ifndef HOLDFAST_CHECKPOINT_QUARANTINE_H
#define HOLDFAST_CHECKPOINT_QUARANTINE_H

#include "common/err.h"
#include "checkpoint/checkpoint.h"

#define QUARANTINE_SUFFIX	".quarantine"
#define QUARANTINE_SCHEMA	"holdfast.quarantine/1"

/* The quarantine of a save directory, to be freed; NULL with *err set. */
char	*quarantine_dir(const char *save_dir, struct err *err);

/* Moves the checkpoint, which lies in save_dir, with what belongs to it; refused when
 * it changed since it was looked at (ERR_BUSY).  *moved_to (to be freed) is where it is
 * then; NULL: nothing moved, and nothing new was left behind. */
int	quarantine_move(const char *save_dir, const struct checkpoint *,
	    char **moved_to, struct err *err);

/* Moves path, which lies in a quarantine, back to where its reason file says.
 * *moved_to (to be freed) is where it is then. */
int	quarantine_undo(const char *path, char **moved_to, struct err *err);

/* Tells each checkpoint in the quarantine of save_dir: the JSON of its reason
 * file as one line.  A missing quarantine is an empty one. */
int	quarantine_list(const char *save_dir,
	    void (*each)(void *arg, const char *path, const char *line),
	    void *arg, struct err *err);

#endif
