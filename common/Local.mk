# common/: errors, buffers, log, clock, loop, children, YAML, JSON, files, maps, options
noinst_LTLIBRARIES += libcommon.la
libcommon_la_SOURCES = \
	%D%/buf.c %D%/buf.h \
	%D%/child.c %D%/child.h \
	%D%/clock.c %D%/clock.h \
	%D%/err.c %D%/err.h \
	%D%/file.c %D%/file.h \
	%D%/json.c %D%/json.h \
	%D%/log.c %D%/log.h \
	%D%/loop.c %D%/loop.h \
	%D%/map.c %D%/map.h \
	%D%/opt.c %D%/opt.h \
	%D%/text.c %D%/text.h \
	%D%/verb.c %D%/verb.h \
	%D%/writer.c %D%/writer.h \
	%D%/yaml.c %D%/yaml.h
libcommon_la_LIBADD = $(YAML_LIBS) $(CJSON_LIBS) -lpthread
