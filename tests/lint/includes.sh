#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# includes.sh - dependencies between folders point downwards only: common <- diagnose,
# checkpoint <- supervisor; plugins use common alone.  Reads the #include lines.
set -u
cd "${top_srcdir:-.}" || exit 99

# may FOLDER ALLOWED...: every quoted include of FOLDER starts with an allowed folder.
failed=0
may() {
	local folder=$1 allowed line
	shift
	allowed=$(printf '%s|' "$@")
	while IFS= read -r line; do
		printf 'not allowed: %s\n' "$line"
		failed=1
	done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' \
	    --include='*.c' --include='*.h' "$folder" 2>/dev/null |
	    grep -vE "include[[:space:]]*\"((${allowed%|})/|config\.h\")")
}

may common common
may diagnose common diagnose
may checkpoint common checkpoint
may plugins common plugins
may supervisor common diagnose checkpoint supervisor

# In angle brackets the project's folders would go unseen.
if grep -rnE 'include[[:space:]]*<(common|diagnose|checkpoint|supervisor|plugins)/' \
    --include='*.c' --include='*.h' common diagnose checkpoint supervisor plugins 2>/dev/null; then
	failed=1
fi
exit "$failed"
