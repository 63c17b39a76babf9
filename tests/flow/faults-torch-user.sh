#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# faults-torch-user.sh - faults-torch.sh once more, as an unprivileged user.
exec bash "$(dirname "$0")/as-nobody" faults-torch.sh
