#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# options.sh - the options in a verb's manual page are those of its table, as `holdfast VERB
# --help' prints it, in both directions; and holdfast(1) lists the verbs that exist.
set -u
holdfast=${top_builddir:-.}/holdfast
cd "${top_srcdir:-.}" || exit 99
failed=0

# differ WHAT A B: the two sorted word lists are equal
differ() {
	local only
	only=$(comm -23 <(printf '%s\n' "$2") <(printf '%s\n' "$3") | tr '\n' ' ')
	[ -z "${only// /}" ] || { echo "$1: only in the program: $only"; failed=1; }
	only=$(comm -13 <(printf '%s\n' "$2") <(printf '%s\n' "$3") | tr '\n' ' ')
	[ -z "${only// /}" ] || { echo "$1: only in the manual: $only"; failed=1; }
}

verbs=$("$holdfast" --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p' | sort -u)
[ -n "$verbs" ] || { echo "holdfast --help lists no verbs"; exit 1; }
differ "man/holdfast.1" "$verbs" \
    "$(sed -n 's/^\.It Cm \([a-z-]*\).*/\1/p' man/holdfast.1 | sort -u)"

for verb in $verbs; do
	page=man/holdfast-$verb.1
	[ -f "$page" ] || { echo "$page: missing"; failed=1; continue; }
	help=$("$holdfast" "$verb" --help)
	differ "$page" \
	    "$(sed -nE 's/^ +(-., )?(--[a-z][a-z-]*).*/\2/p' <<<"$help" | sort -u)" \
	    "$(grep -oE '^\.It .*' "$page" | grep -oE 'Fl -[a-z][a-z-]*' |
	    sed 's/Fl -/--/' | sort -u)"
done
exit "$failed"
