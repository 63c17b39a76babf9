# One line per unit test; the source is %D%/test_NAME.c.
unit_tests += \
	%D%/test_checkpoint_files \
	%D%/test_checkpoint_latest \
	%D%/test_checkpoint_pickle \
	%D%/test_checkpoint_zip \
	%D%/test_diagnose_causes \
	%D%/test_diagnose_line \
	%D%/test_diagnose_literal \
	%D%/test_diagnose_live \
	%D%/test_diagnose_match \
	%D%/test_diagnose_progress \
	%D%/test_diagnose_rules \
	%D%/test_diagnose_scan

# What several tests of a folder share.
if HAVE_CHECK
check_LTLIBRARIES += libfixtures.la
endif
libfixtures_la_SOURCES = \
	%D%/checkpoint_fixture.c %D%/checkpoint_fixture.h

# What every unit test links; the libraries come before those that they use.
AM_CFLAGS += $(CHECK_CFLAGS)
LDADD = libfixtures.la libsupervisor.la libcheckpoint.la libdiagnose.la libcommon.la \
	$(CHECK_LIBS)
