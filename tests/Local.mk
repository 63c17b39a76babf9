# tests/: unit (Check), lint (the sources against their rules), flow (real processes),
# bench (what it costs)
#
# A unit test is one line here: tests/unit/test_NAME.c becomes the program
# test_NAME, linked with everything but main().
unit_tests =
check_LTLIBRARIES =
include tests/unit/Local.mk
include tests/bench/Local.mk

lint_tests = \
	%D%/lint/includes.sh \
	%D%/lint/style.sh \
	%D%/lint/manpages.sh \
	%D%/lint/api.sh \
	%D%/lint/options.sh

# The longest first: with make -j2 they start first.
flow_tests = \
	%D%/flow/faults-torch.sh \
	%D%/flow/faults-torch-user.sh \
	%D%/flow/torchrun.sh \
	%D%/flow/native.sh \
	%D%/flow/stop.sh \
	%D%/flow/restart.sh \
	%D%/flow/adopt.sh \
	%D%/flow/adopt-user.sh \
	%D%/flow/output.sh \
	%D%/flow/diagnose.sh \
	%D%/flow/follow.sh \
	%D%/flow/hang.sh \
	%D%/flow/kernel.sh \
	%D%/flow/loss.sh \
	%D%/flow/refuse.sh \
	%D%/flow/stage.sh \
	%D%/flow/snapshot.sh \
	%D%/flow/checkpoint.sh

TEST_EXTENSIONS = .sh
SH_LOG_COMPILER = bash
AM_TESTS_ENVIRONMENT = \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	MANDOC='$(MANDOC)'; export MANDOC;

if HAVE_CHECK
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif
TESTS += $(lint_tests) $(flow_tests) $(bench_tests)

EXTRA_DIST += $(lint_tests) $(flow_tests) \
	%D%/fuzz/fuzz_dcp.c \
	%D%/fuzz/fuzz_feed.c \
	%D%/fuzz/fuzz_file.h \
	%D%/fuzz/fuzz_manifest.c \
	%D%/fuzz/fuzz_pickle.c \
	%D%/fuzz/fuzz_rules.c \
	%D%/fuzz/fuzz_safetensors.c \
	%D%/fuzz/fuzz_unpack.c \
	%D%/fuzz/fuzz_zip.c \
	%D%/fuzz/run.sh \
	%D%/fuzz/seeds/fuzz_dcp/one \
	%D%/fuzz/seeds/fuzz_feed/traceback \
	%D%/fuzz/seeds/fuzz_manifest/two \
	%D%/fuzz/seeds/fuzz_rules/kinds.yaml \
	%D%/fuzz/seeds/fuzz_rules/odd.yaml \
	%D%/fuzz/seeds/fuzz_safetensors/two \
	%D%/flow/lib.sh \
	%D%/flow/saves.sh \
	%D%/flow/as-nobody \
	%D%/flow/fake-rank \
	%D%/flow/fake-layout \
	%D%/flow/fake-peers \
	%D%/flow/fake-saver \
	%D%/flow/fake-snapper \
	%D%/flow/query.py

# Parts of `make check`, by themselves.
# What runs with sanitizers: torch is not among it, its processes are not ours.
# What forks some ten thousand times takes minutes there.
sanitize_tests = $(filter-out %D%/unit/test_checkpoint_storage,$(unit_tests)) \
	%D%/flow/native.sh %D%/flow/restart.sh %D%/flow/adopt.sh \
	%D%/flow/stop.sh %D%/flow/output.sh %D%/flow/refuse.sh
# Needs clang: FUZZ_SECONDS for each target.
.PHONY: fuzz
fuzz: diagnose/rules_builtin.c
	top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
	  bash $(srcdir)/%D%/fuzz/run.sh $(FUZZ_SECONDS)

.PHONY: check-unit check-lint check-flow check-sanitize
check-unit:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(unit_tests)'
check-lint:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(lint_tests)'
check-flow:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(flow_tests)'
check-sanitize:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(sanitize_tests)'
