# supervisor/: the command, the run parent, supervisor, agent and reaper
bin_PROGRAMS += holdfast
holdfast_SOURCES = \
	%D%/main.c \
	%D%/verbs.h
holdfast_LDADD = libcommon.la
