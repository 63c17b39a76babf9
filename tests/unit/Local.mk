# One line per unit test; the source is %D%/test_NAME.c.
unit_tests += \
	%D%/test_checkpoint_api \
	%D%/test_checkpoint_expect \
	%D%/test_checkpoint_faults \
	%D%/test_checkpoint_files \
	%D%/test_checkpoint_format_ranks \
	%D%/test_checkpoint_format_shards \
	%D%/test_checkpoint_latest \
	%D%/test_checkpoint_manifest \
	%D%/test_checkpoint_odd_entries \
	%D%/test_checkpoint_pass \
	%D%/test_checkpoint_pickle \
	%D%/test_checkpoint_prune \
	%D%/test_checkpoint_quarantine \
	%D%/test_checkpoint_select \
	%D%/test_checkpoint_snapshot \
	%D%/test_checkpoint_snapshot_lies \
	%D%/test_checkpoint_snapshot_writing \
	%D%/test_checkpoint_stage \
	%D%/test_checkpoint_stage_room \
	%D%/test_checkpoint_storage \
	%D%/test_checkpoint_torch_write \
	%D%/test_checkpoint_tracker \
	%D%/test_checkpoint_writing \
	%D%/test_checkpoint_zip \
	%D%/test_common_child \
	%D%/test_common_err \
	%D%/test_common_file \
	%D%/test_common_json \
	%D%/test_common_loop \
	%D%/test_common_map \
	%D%/test_common_opt \
	%D%/test_common_text \
	%D%/test_common_writer \
	%D%/test_common_yaml \
	%D%/test_diagnose_block \
	%D%/test_diagnose_card \
	%D%/test_diagnose_causes \
	%D%/test_diagnose_clock \
	%D%/test_diagnose_collect \
	%D%/test_diagnose_echo \
	%D%/test_diagnose_entity \
	%D%/test_diagnose_explain \
	%D%/test_diagnose_feed \
	%D%/test_diagnose_feed_json \
	%D%/test_diagnose_feed_names \
	%D%/test_diagnose_findings \
	%D%/test_diagnose_fingerprint \
	%D%/test_diagnose_line \
	%D%/test_diagnose_literal \
	%D%/test_diagnose_live \
	%D%/test_diagnose_match \
	%D%/test_diagnose_progress \
	%D%/test_diagnose_rules \
	%D%/test_diagnose_cache \
	%D%/test_diagnose_pairs \
	%D%/test_diagnose_scan \
	%D%/test_diagnose_unpack \
	%D%/test_diagnose_watchdog \
	%D%/test_supervisor_hang \
	%D%/test_supervisor_history \
	%D%/test_supervisor_loss \
	%D%/test_supervisor_odd \
	%D%/test_supervisor_journal \
	%D%/test_supervisor_launch \
	%D%/test_supervisor_lock \
	%D%/test_supervisor_proc \
	%D%/test_supervisor_recovery \
	%D%/test_supervisor_restart \
	%D%/test_supervisor_run_spec \
	%D%/test_supervisor_simulation \
	%D%/test_supervisor_spool \
	%D%/test_supervisor_wire \
	%D%/test_supervisor_world

# What several tests of a folder share.
if HAVE_CHECK
check_LTLIBRARIES += libfixtures.la
endif
libfixtures_la_SOURCES = \
	%D%/checkpoint_damage.c %D%/checkpoint_damage.h \
	%D%/checkpoint_fixture.c %D%/checkpoint_fixture.h \
	%D%/checkpoint_layouts.c %D%/checkpoint_layouts.h \
	%D%/restart_sim.c %D%/restart_sim.h \
	%D%/rule_fixture.c %D%/rule_fixture.h \
	%D%/snapshot_fixture.c %D%/snapshot_fixture.h \
	%D%/unit.c %D%/unit.h \
	%D%/gated_calls.h %D%/writing_faults.h

# What every unit test links; the libraries come before those that they use.
AM_CFLAGS += $(CHECK_CFLAGS)
LDADD = libfixtures.la libsupervisor.la libcheckpoint.la libdiagnose.la libcommon.la \
	$(CHECK_LIBS)
