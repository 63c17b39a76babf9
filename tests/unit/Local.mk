# One line per unit test; the source is %D%/test_NAME.c.
# unit_tests += %D%/test_NAME

# What every unit test links; the libraries come before those that they use.
LDADD = libcommon.la $(CHECK_LIBS)
