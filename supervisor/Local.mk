# supervisor/: the command, the run parent, supervisor, agent and reaper
noinst_LTLIBRARIES += libsupervisor.la
libsupervisor_la_SOURCES = \
	%D%/actions.c \
	%D%/agent.c %D%/agent.h \
	%D%/agent_attempt.c %D%/agent_attempt.h \
	%D%/agent_evidence.c \
	%D%/agent_kernel.c \
	%D%/agent_output.c \
	%D%/agent_scan.c %D%/agent_scan.h \
	%D%/agent_stage.c \
	%D%/agent_start.c \
	%D%/agent_sweep.c \
	%D%/agent_watch.c \
	%D%/card.c \
	%D%/control.c \
	%D%/envp.c %D%/envp.h \
	%D%/examine.c \
	%D%/hang.c %D%/hang.h \
	%D%/history.c %D%/history.h \
	%D%/incident.c %D%/incident.h \
	%D%/journal.c %D%/journal.h \
	%D%/launch.c \
	%D%/link.c \
	%D%/lock.c %D%/lock.h \
	%D%/loss.c %D%/loss.h \
	%D%/monitor.c \
	%D%/monitor_hang.c \
	%D%/odd.c %D%/odd.h \
	%D%/port.c %D%/port.h \
	%D%/proc.c %D%/proc.h \
	%D%/reaper.c %D%/reaper.h \
	%D%/recovery.c %D%/recovery.h \
	%D%/restart.c %D%/restart.h \
	%D%/role.c %D%/role.h \
	%D%/run_config.c %D%/run_config.h \
	%D%/run_find.c %D%/run_find.h \
	%D%/run_life.c %D%/run_life.h \
	%D%/run_parent.c %D%/run_parent.h \
	%D%/run_spec.c %D%/run_spec.h \
	%D%/run_stage.c %D%/run_stage.h \
	%D%/spawn.c %D%/spawn.h \
	%D%/spool.c %D%/spool.h \
	%D%/status.c \
	%D%/supervisor.c %D%/supervisor.h \
	%D%/verb_run.c \
	%D%/verb_status.c \
	%D%/verb_stop.c \
	%D%/verbs.h \
	%D%/wire.c %D%/wire.h
libsupervisor_la_LIBADD = libdiagnose.la libcommon.la -lm

bin_PROGRAMS += holdfast
holdfast_SOURCES = %D%/main.c
holdfast_LDADD = libsupervisor.la libcheckpoint.la libdiagnose.la libcommon.la
