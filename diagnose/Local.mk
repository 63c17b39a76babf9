# diagnose/: logs to verdicts; libholdfast-diagnose, the diagnose and rules verbs
noinst_LTLIBRARIES += libdiagnose-core.la libdiagnose.la
noinst_PROGRAMS += %D%/mkrules

# What mkrules itself needs.
libdiagnose_core_la_SOURCES = \
	%D%/digits.c %D%/digits.h \
	%D%/literal.c %D%/literal.h \
	%D%/literal_set.c %D%/literal_set.h \
	%D%/match.c %D%/match.h \
	%D%/rule.c %D%/rule.h \
	%D%/rule_read.c \
	%D%/scan.c %D%/scan.h \
	%D%/scan_bucket.c \
	%D%/scan_kernel.h \
	%D%/scan_plan.c %D%/scan_plan.h \
	%D%/scan_sample.c \
	%D%/scan_x86.c
libdiagnose_core_la_LIBADD = libcommon.la $(PCRE2_LIBS)

libdiagnose_la_SOURCES = \
	%D%/ahead.c %D%/ahead.h \
	%D%/block.c %D%/block.h \
	%D%/card.c %D%/card.h \
	%D%/card_text.c %D%/card_text.h \
	%D%/cause.c %D%/cause.h \
	%D%/causes.c %D%/causes.h \
	%D%/clock.c %D%/clock.h \
	%D%/collect.c \
	%D%/collector.h \
	%D%/confidence.c %D%/confidence.h \
	%D%/confirm.c %D%/confirm.h \
	%D%/echo.c %D%/echo.h \
	%D%/ends.c \
	%D%/entity.c %D%/entity.h \
	%D%/event.c %D%/event.h \
	%D%/exits.c %D%/exits.h \
	%D%/explain.c %D%/explain.h \
	%D%/facts.c %D%/facts.h \
	%D%/feed.c %D%/feed.h \
	%D%/feed_file.c %D%/feed_file.h \
	%D%/feed_json.c %D%/feed_json.h \
	%D%/feed_name.c %D%/feed_name.h \
	%D%/feed_path.c %D%/feed_path.h \
	%D%/feed_seen.c %D%/feed_seen.h \
	%D%/feed_set.c %D%/feed_set.h \
	%D%/feed_spool.c %D%/feed_spool.h \
	%D%/feed_text.c %D%/feed_text.h \
	%D%/feed_tree.c %D%/feed_tree.h \
	%D%/findings.c %D%/findings.h \
	%D%/findings_print.c \
	%D%/fingerprint.c %D%/fingerprint.h \
	%D%/follow.c %D%/follow.h \
	%D%/follow_file.c %D%/follow_file.h \
	%D%/guard.c %D%/guard.h \
	%D%/line.c %D%/line.h \
	%D%/live.c %D%/live.h \
	%D%/meter.c %D%/meter.h \
	%D%/nccl_log.c %D%/nccl_log.h \
	%D%/prefix.c %D%/prefix.h \
	%D%/prefix_log.c \
	%D%/prefix_rank.c \
	%D%/prefix_time.c \
	%D%/progress.c %D%/progress.h \
	%D%/quote.c %D%/quote.h \
	%D%/report.c %D%/report.h \
	%D%/rule_bomb.c %D%/rule_bomb.h \
	%D%/rule_cache.c %D%/rule_cache.h \
	%D%/rule_lint.c \
	%D%/rule_load.c %D%/rule_load.h \
	%D%/rule_show.c %D%/rule_show.h \
	%D%/summary.c %D%/summary.h \
	%D%/suspects.c %D%/suspects.h \
	%D%/table.c %D%/table.h \
	%D%/template.c \
	%D%/time_text.c %D%/time_text.h \
	%D%/unpack.c %D%/unpack.h \
	%D%/unpack_gz.c \
	%D%/unpack_xz.c \
	%D%/unpack_zstd.c \
	%D%/verb_diagnose.c \
	%D%/verb_rules.c \
	%D%/verbs.h \
	%D%/verdict.c %D%/verdict.h \
	%D%/watchdog.c %D%/watchdog.h \
	%D%/watchdog_read.c
nodist_libdiagnose_la_SOURCES = %D%/rules_builtin.c
libdiagnose_la_LIBADD = libdiagnose-core.la $(ISAL_LIBS) $(ZSTD_LIBS) $(LZMA_LIBS) -lm

%C%_mkrules_SOURCES = %D%/mkrules.c
%C%_mkrules_LDADD = libdiagnose-core.la

BUILT_SOURCES += %D%/rules_builtin.c
CLEANFILES += %D%/rules_builtin.c

%D%/rules_builtin.c: %D%/mkrules$(EXEEXT) $(RULES_SAMPLE) $(RULES_YAML)
	$(AM_V_GEN)$(MKDIR_P) %D%; files=; for f in $(RULES_SAMPLE) $(RULES_YAML); do \
	  if test -f $$f; then files="$$files $$f"; \
	  else files="$$files $(srcdir)/$$f"; fi; done; \
	./%D%/mkrules$(EXEEXT) $$files >$@.tmp && mv $@.tmp $@

# The installed library: the same objects behind a small header.
lib_LTLIBRARIES += libholdfast-diagnose.la
include_HEADERS += %D%/holdfast-diagnose.h
libholdfast_diagnose_la_SOURCES = %D%/library.c
libholdfast_diagnose_la_LIBADD = libdiagnose.la
libholdfast_diagnose_la_LDFLAGS = -version-info 0:0:0 -no-undefined \
	-export-symbols-regex '^holdfast_diagnose_'

pkgconfig_DATA += %D%/holdfast-diagnose.pc
CLEANFILES += %D%/holdfast-diagnose.pc
EXTRA_DIST += %D%/holdfast-diagnose.pc.in

%D%/holdfast-diagnose.pc: %D%/holdfast-diagnose.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(SED) -e 's|@prefix[@]|$(prefix)|' \
	  -e 's|@exec_prefix[@]|$(exec_prefix)|' -e 's|@libdir[@]|$(libdir)|' \
	  -e 's|@includedir[@]|$(includedir)|' \
	  -e 's|@PACKAGE_VERSION[@]|$(PACKAGE_VERSION)|' \
	  $(srcdir)/%D%/holdfast-diagnose.pc.in >$@.tmp && mv $@.tmp $@
