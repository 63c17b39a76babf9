# checkpoint/: libholdfast-checkpoint, and the checkpoint verb for the command
checkpoint_core = \
	%D%/check.c %D%/checkpoint.c %D%/checkpoint.h \
	%D%/expect.c %D%/expect.h \
	%D%/format.h %D%/formats.c \
	%D%/format_folder.c \
	%D%/format_safetensors.c \
	%D%/format_torch_legacy.c \
	%D%/format_torch_zip.c \
	%D%/holdfast-checkpoint.h \
	%D%/input.c %D%/input.h \
	%D%/latest.c \
	%D%/names.c %D%/names.h \
	%D%/pickle.c %D%/pickle.h %D%/pickle_vm.c %D%/pickle_vm.h \
	%D%/report.c %D%/report.h \
	%D%/scan.c %D%/scan.h \
	%D%/tensors.c %D%/tensors.h \
	%D%/torch.c %D%/torch.h \
	%D%/zip.c %D%/zip.h %D%/zip_data.c

noinst_LTLIBRARIES += libcheckpoint.la
libcheckpoint_la_SOURCES = $(checkpoint_core) \
	%D%/action.h \
	%D%/action_latest.c \
	%D%/action_quarantine.c \
	%D%/action_verify.c \
	%D%/print.c %D%/print.h \
	%D%/quarantine.c %D%/quarantine.h \
	%D%/tracker.c %D%/tracker.h \
	%D%/verb_checkpoint.c %D%/verbs.h
libcheckpoint_la_LIBADD = libcommon.la $(ISAL_LIBS) $(XXHASH_LIBS) $(ZLIB_LIBS) \
	-lpthread
