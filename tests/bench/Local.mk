# tests/bench/: what the engine costs, against reading at all and against others
#
# check_PROGRAMS, since smoke.sh runs them in `make check'.
bench_programs = \
	%D%/bench_run \
	%D%/bench_scan \
	%D%/loggen
if HAVE_HS
bench_programs += %D%/bench_hs
endif
check_PROGRAMS += $(bench_programs)

%C%_bench_run_LDADD = libcommon.la
%C%_bench_scan_LDADD = libdiagnose.la libcommon.la
%C%_loggen_LDADD =
%C%_bench_hs_CFLAGS = $(AM_CFLAGS) $(HS_CFLAGS)
%C%_bench_hs_LDADD = libcommon.la $(HS_LIBS)

bench_tests = %D%/smoke.sh
EXTRA_DIST += $(bench_tests) %D%/bench.py %D%/bench_checkpoint.py %D%/bench_rules.py \
	%D%/bench_save.py %D%/bench_table.py

# BENCH_ARGS: --size MB, --rounds N, --only PART, --json; see bench.py.
BENCH_PY = top_builddir='$(abs_top_builddir)' python3 -B $(srcdir)/%D%/bench.py
.PHONY: bench bench-smoke
bench: holdfast$(EXEEXT) libholdfast-checkpoint.la $(bench_programs)
	$(BENCH_PY) $(BENCH_ARGS)
bench-smoke: holdfast$(EXEEXT) libholdfast-checkpoint.la $(bench_programs)
	$(BENCH_PY) --smoke $(BENCH_ARGS)
