/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reaper.h - the process between agent and ranks, one per attempt and node.
 *
 * It has no other children than the ranks and, as a child subreaper
 * (prctl(2)), inherits every descendant whose parent ends; so ECHILD from
 * waitid(2) proves that all of them are gone, double forks and new sessions
 * included.
 *
 * It speaks wire.h frames on descriptor REAPER_SOCKET_FD:
 *   from the agent  spawn {argv, cwd, nproc, rank0, error_dir}
 *                   signal {signal}   to the main processes
 *                   term              TERM and CONT to the main processes
 *                   kill              KILL to everything until it is gone
 *   to the agent    spawned {pids}    spawn_failed {errnum, text}
 *                   exit {index, pid, kind, status, time_ns}
 *                   stuck {processes} what KILL does not end
 *                   gone {killed}     ECHILD
 * When the agent dies, the reaper kills everything and ends.
 *
 * Output pipes of the main processes are inherited from REAPER_OUTPUT_FD on.
 */
#ifndef HOLDFAST_SUPERVISOR_REAPER_H
#define HOLDFAST_SUPERVISOR_REAPER_H

#define REAPER_SOCKET_FD	3
#define REAPER_OUTPUT_FD	4

#endif
