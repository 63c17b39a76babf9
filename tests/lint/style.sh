#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# style.sh - the mechanical rules of HACKING.md, over every source file: licence line,
# first comment, length, banned functions, left-over notes, trailing blanks.
set -u
cd "${top_srcdir:-.}" || exit 99
failed=0

bad() {
	printf '%s\n' "$*"
	failed=1
}

# A tar ball has no .git; there the folders are the list.
list() {
	if [ -e .git ] && git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files --cached --others --exclude-standard
	else
		find common diagnose checkpoint supervisor plugins tests examples rules man \
		    bootstrap configure.ac Makefile.am -type f 2>/dev/null
	fi | grep -E "$1" | while IFS= read -r f; do [ -f "$f" ] && printf '%s\n' "$f"; done
}

mapfile -t c_files < <(list '^(common|diagnose|checkpoint|supervisor|plugins|tests)/.*\.[ch]$')
mapfile -t scripts < <(list '^(bootstrap|\.ci/run|(tests|examples)/.*(\.sh|\.py|/torchrun|/fake-rank))$')
mapfile -t makes < <(list '(^|/)(Local\.mk|Makefile\.am|configure\.ac)$')
[ "${#c_files[@]}" -gt 0 ] || bad "no C files found"

for f in "${c_files[@]}"; do
	mapfile -t head -n 3 <"$f"
	[ "${head[0]}" = '/* SPDX-License-Identifier: Apache-2.0 */' ] ||
		bad "$f:1: the SPDX line must come first"
	[[ ${head[1]-} == '/*'* ]] || bad "$f:2: no comment says what the file is"
	lines=$(wc -l <"$f")
	[ "$lines" -le 600 ] || bad "$f: $lines lines (600 at most)"
	long=$(expand "$f" | awk 'length($0) > 90 { printf " %d", NR }')
	[ -z "$long" ] || bad "$f: over 90 columns in line$long"
done

for f in "${scripts[@]}"; do
	head -n 2 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
		bad "$f: no SPDX line among the first two"
	lines=$(wc -l <"$f")
	[ "$lines" -le 600 ] || bad "$f: $lines lines (600 at most)"
done

# grep prints file:line: and what it found; finding something is the failure.
none() {
	local what=$1 pattern=$2 found
	shift 2
	found=$(grep -nE "$pattern" "$@" /dev/null) || return 0
	bad "$what:"
	printf '%s\n' "$found"
}
if [ "${#c_files[@]}" -gt 0 ]; then
	none "banned function" \
	    '(^|[^[:alnum:]_.>"])(sprintf|vsprintf|strcpy|strcat|gets|system|popen|tmpnam|mktemp)[[:space:]]*\(' \
	    "${c_files[@]}"
	none "// comment" '^[[:space:]]*//' "${c_files[@]}"
fi
none "trailing blanks" '[[:blank:]]+$' "${c_files[@]}" "${scripts[@]}" "${makes[@]}"
# The words are split so that this file does not find itself.
none "left-over note" 'TO''DO|FIX''ME|(^|[^.X])XX''X([^X]|$)' "${c_files[@]}" "${scripts[@]}" "${makes[@]}"

if command -v shellcheck >/dev/null; then
	mapfile -t shells < <(grep -lE '^#!/bin/(ba)?sh' "${scripts[@]}")
	shellcheck -x -S warning "${shells[@]}" || failed=1
fi
exit "$failed"
