#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# native-user.sh - native.sh once more, as an unprivileged user.
exec bash "$(dirname "$0")/as-nobody" native.sh
