# checkpoint/: libholdfast-checkpoint, and the checkpoint verb for the command
checkpoint_core = \
	%D%/check.c %D%/checkpoint.c %D%/checkpoint.h \
	%D%/digest.c %D%/digest.h %D%/digest_body.h \
	%D%/digest_avx2.c %D%/digest_avx512.c \
	%D%/expect.c %D%/expect.h \
	%D%/format.h %D%/formats.c \
	%D%/folder.c %D%/folder.h \
	%D%/format_accelerate.c \
	%D%/format_dcp.c \
	%D%/format_deepspeed.c \
	%D%/format_fairseq.c \
	%D%/format_folder.c \
	%D%/format_hf_model.c \
	%D%/format_hf_trainer.c \
	%D%/format_internevo.c \
	%D%/format_lightning.c \
	%D%/format_manifest.c \
	%D%/format_megatron_dist.c \
	%D%/format_megatron_legacy.c \
	%D%/format_nemo.c \
	%D%/format_nvrx.c \
	%D%/format_orbax.c \
	%D%/format_pickle.c \
	%D%/format_safetensors.c \
	%D%/format_snapshot.c \
	%D%/format_torch_legacy.c \
	%D%/format_torch_zip.c \
	%D%/grid.c %D%/grid.h \
	%D%/hf_index.c %D%/hf_index.h \
	%D%/holdfast-checkpoint.h \
	%D%/input.c %D%/input.h \
	%D%/latest.c \
	%D%/manifest.c %D%/manifest.h %D%/manifest_text.h %D%/manifest_write.c \
	%D%/names.c %D%/names.h \
	%D%/pass.c %D%/pass.h \
	%D%/peek.c %D%/peek.h \
	%D%/pickle.c %D%/pickle.h %D%/pickle_vm.c %D%/pickle_vm.h \
	%D%/proof.c %D%/proof.h \
	%D%/report.c %D%/report.h \
	%D%/scan.c %D%/scan.h \
	%D%/tensors.c %D%/tensors.h \
	%D%/torch.c %D%/torch.h \
	%D%/trouble.c %D%/trouble.h \
	%D%/zip.c %D%/zip.h %D%/zip_data.c

noinst_LTLIBRARIES += libcheckpoint.la
libcheckpoint_la_SOURCES = $(checkpoint_core) \
	%D%/action.h \
	%D%/action_latest.c \
	%D%/action_manifest.c \
	%D%/action_prune.c \
	%D%/action_quarantine.c \
	%D%/action_select.c \
	%D%/action_stage.c \
	%D%/action_verify.c \
	%D%/api.c \
	%D%/beside.c %D%/beside.h \
	%D%/print.c %D%/print.h \
	%D%/prune.c %D%/prune.h \
	%D%/quarantine.c %D%/quarantine.h \
	%D%/select.c %D%/select.h \
	%D%/select_apply.c %D%/select_undo.c %D%/select_undo.h \
	%D%/sink.c %D%/sink.h \
	%D%/snapshot_area.c %D%/snapshot_area.h \
	%D%/snapshot_client.c %D%/snapshot_client.h \
	%D%/snapshot_copy.c %D%/snapshot_copy.h \
	%D%/snapshot_flush.c %D%/snapshot_flush.h \
	%D%/snapshot_job.c %D%/snapshot_job.h \
	%D%/snapshot_link.c \
	%D%/snapshot_name.h \
	%D%/snapshot_publish.c %D%/snapshot_publish.h \
	%D%/snapshot_server.c %D%/snapshot_server.h \
	%D%/snapshot_session.c %D%/snapshot_session.h \
	%D%/snapshot_wire.c %D%/snapshot_wire.h \
	%D%/stage.c %D%/stage.h \
	%D%/stage_copy.c %D%/stage_copy.h \
	%D%/stage_daemon.c %D%/stage_daemon.h \
	%D%/stage_judged.c %D%/stage_judged.h \
	%D%/stage_lock.c %D%/stage_lock.h \
	%D%/stage_manifest.c %D%/stage_manifest.h \
	%D%/stage_nodes.c %D%/stage_nodes.h \
	%D%/stage_notes.c %D%/stage_notes.h \
	%D%/stage_offer.c %D%/stage_offer.h \
	%D%/stage_publish.c %D%/stage_publish.h \
	%D%/stage_room.c %D%/stage_room.h \
	%D%/stage_switch.c %D%/stage_switch.h \
	%D%/torch_pickle.c %D%/torch_write.c %D%/torch_write.h \
	%D%/tracker.c %D%/tracker.h \
	%D%/verb_checkpoint.c %D%/verbs.h
libcheckpoint_la_LIBADD = libcommon.la $(ISAL_LIBS) $(XXHASH_LIBS) $(ZLIB_LIBS) \
	-lpthread

# The installed library: the same objects, without the verb, behind a small header.
lib_LTLIBRARIES += libholdfast-checkpoint.la
include_HEADERS += %D%/holdfast-checkpoint.h
libholdfast_checkpoint_la_SOURCES =
libholdfast_checkpoint_la_LIBADD = libcheckpoint.la
libholdfast_checkpoint_la_LDFLAGS = -version-info 0:0:0 -no-undefined \
	-export-symbols-regex '^holdfast_checkpoint_'

pkgconfig_DATA += %D%/holdfast-checkpoint.pc
CLEANFILES += %D%/holdfast-checkpoint.pc
EXTRA_DIST += %D%/holdfast-checkpoint.pc.in

%D%/holdfast-checkpoint.pc: %D%/holdfast-checkpoint.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && sed -e 's|@prefix[@]|$(prefix)|' \
	  -e 's|@exec_prefix[@]|$(exec_prefix)|' -e 's|@libdir[@]|$(libdir)|' \
	  -e 's|@includedir[@]|$(includedir)|' -e 's|@VERSION[@]|$(VERSION)|' \
	  $(srcdir)/%D%/holdfast-checkpoint.pc.in >$@.tmp && mv $@.tmp $@

# Parsers of foreign bytes under libFuzzer: make fuzz, then run
# tests/fuzz/fuzz_zip and its neighbours.  Not part of make check.
fuzz_flags = -g -O1 -fsanitize=fuzzer,address,undefined
EXTRA_DIST += tests/fuzz/fuzz_zip.c tests/fuzz/fuzz_pickle.c tests/fuzz/fuzz_dcp.c \
	tests/fuzz/fuzz_manifest.c tests/fuzz/fuzz_safetensors.c
.PHONY: fuzz fuzz-checkpoint
fuzz-checkpoint:
	$(MKDIR_P) tests/fuzz
	for f in dcp manifest pickle safetensors zip; do \
	  clang -std=gnu11 $(fuzz_flags) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) \
	    -o tests/fuzz/fuzz_$$f $(srcdir)/tests/fuzz/fuzz_$$f.c \
	    $(addprefix $(srcdir)/,$(filter %.c,$(checkpoint_core))) \
	    $(srcdir)/common/buf.c $(srcdir)/common/clock.c $(srcdir)/common/err.c \
	    $(srcdir)/common/file.c \
	    $(srcdir)/common/json.c $(srcdir)/common/text.c \
	    $(CJSON_LIBS) $(ISAL_LIBS) $(ZLIB_LIBS) -lpthread || exit 1; \
	done
fuzz: fuzz-checkpoint
