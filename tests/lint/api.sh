#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# api.sh - the installed headers are C99 and C++98 by themselves, each function in them is
# exported, and has its place in the manual page of the library.
set -u
cd "${top_srcdir:-.}" || exit 99
build=${top_builddir:-.}
failed=0

say() {
	echo "$*"
	failed=1
}

# One of these is there wherever the tests run; only clang knows C++ without its library.
compiler=$(command -v clang) || compiler=$(command -v c++) || exit 77
headers=$(cat ./*/Local.mk | grep "^include_HEADERS")
[ -n "$headers" ] || say "no installed header was found"
for folder in checkpoint diagnose; do
	header=$folder/holdfast-$folder.h
	[[ $headers == *"%D%/holdfast-$folder.h"* ]] || say "$header: not installed"
	for language in c:c99 c++:c++98; do
		"$compiler" -fsyntax-only -Wall -Wextra -pedantic-errors -Werror \
		    -x "${language%:*}" -std="${language#*:}" - \
		    <<<"#include \"$PWD/$header\"" ||
			say "$header: not ${language#*:}"
	done
	library=$build/.libs/libholdfast-$folder.so
	exported=$(nm -D --defined-only "$library" | awk '{ print $3 }')
	declared=$(grep -oE '\bholdfast_[a-z_]+\(' "$header" | tr -d '(' | sort -u)
	for name in $declared; do
		# In comments a call may be named that exists elsewhere.
		[[ $'\n'$exported$'\n' == *$'\n'$name$'\n'* ]] ||
			say "$header: $name is declared, but not exported"
	done
	for name in $exported; do
		[[ $'\n'$declared$'\n' == *$'\n'$name$'\n'* ]] ||
			say "$header: $name is exported, but not declared"
	done
	page=man/holdfast-$folder.3
	[ -e "$page" ] || continue
	for name in $declared; do
		grep -qE "^\.F[no] (\"[^\"]*\" )?$name\b" "$page" || say "$page: $name has no place"
		grep -q "^\.Nm $name\b" "$page" || say "$page: $name is no name of it"
	done
done
exit "$failed"
