# examples/: a real trainer and the demonstration; installed as documentation
examplesdir = $(docdir)/examples
dist_examples_SCRIPTS = %D%/train.py %D%/snapshot.py %D%/torchrun %D%/demo.sh
dist_examples_DATA = %D%/README.md
EXTRA_DIST += LICENSE
