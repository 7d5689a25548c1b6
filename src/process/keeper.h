/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that lbr forks for the moments in which it attaches to processes or leaves them. It completes the work, or
 * undoes it, if lbr is killed meanwhile.
 */
#ifndef PROCESS_KEEPER_H
#define PROCESS_KEEPER_H

struct process;

typedef int keeper_function(struct process *process, const void *data);

/* Calls `work` in the keeper and waits for it. Of the process, `attached_count` and `stopped` are those of the
 * keeper afterwards. The wait function of the attachment is called in lbr. If lbr is killed meanwhile,
 * the keeper gives up waiting for a thread, and calls `undo` after it has succeeded; NULL: it does neither. Returns the
 * result of `work`; -EIO after a message: the keeper itself was killed. */
int keeper_run(struct process *process, keeper_function *work, keeper_function *undo, const void *data);

#endif
