# SPDX-License-Identifier: Apache-2.0
RULES_YAML = \
	%D%/reasons.yaml \
	%D%/accelerators.yaml \
	%D%/c10d.yaml \
	%D%/containers.yaml \
	%D%/cuda.yaml \
	%D%/fallback.yaml \
	%D%/frameworks.yaml \
	%D%/jax.yaml \
	%D%/kernel-gpu.yaml \
	%D%/kernel-host.yaml \
	%D%/launchers.yaml \
	%D%/nccl.yaml \
	%D%/network.yaml \
	%D%/python.yaml \
	%D%/slurm.yaml \
	%D%/storage.yaml \
	%D%/torchelastic.yaml

# What healthy logs look like; the scanner is planned with it.
RULES_SAMPLE = %D%/healthy.txt

EXTRA_DIST += %D%/README.md $(RULES_SAMPLE)
rulesdir = $(pkgdatadir)/rules
dist_rules_DATA = $(RULES_YAML)
