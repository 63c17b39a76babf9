#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# faults-torch-user.sh - faults-torch.sh once more, as an unprivileged user, with the
# faults whose end needs rights over processes.
export FAULTS='kill daemon hang ignore-term'
exec bash "$(dirname "$0")/as-nobody" faults-torch.sh
