#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# adopt-user.sh - adopt.sh once more, as an unprivileged user.
exec bash "$(dirname "$0")/as-nobody" adopt.sh
