# man/: mdoc pages
dist_man_MANS += \
	%D%/holdfast.1 \
	%D%/holdfast-checkpoint.1 \
	%D%/holdfast-checkpoint.3 \
	%D%/holdfast-diagnose.1 \
	%D%/holdfast-rules.1 \
	%D%/holdfast-run.1 \
	%D%/holdfast-status.1 \
	%D%/holdfast-stop.1 \
	%D%/holdfast.conf.5 \
	%D%/holdfast-journal.5 \
	%D%/holdfast-manifest.5 \
	%D%/holdfast-rules.5 \
	%D%/holdfast.7
