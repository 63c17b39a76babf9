#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# manpages.sh - the manual pages are clean mdoc, and each verb and each page that another
# page refers to exists.
set -u
[ -n "${MANDOC-}" ] || MANDOC=$(command -v mandoc) || exit 77
cd "${top_srcdir:-.}" || exit 99
failed=0

"$MANDOC" -Tlint -W warning man/*.[1-8] || failed=1

# .Xr holdfast... SECTION
while read -r name section; do
	[ -f "man/$name.$section" ] ||
		{ echo "man/$name.$section: referred to, but missing"; failed=1; }
done < <(sed -n 's/^\.Xr \(holdfast[^ ]*\) \([1-8]\).*/\1 \2/p' man/*.[1-8] | sort -u)

for page in man/*.[1-8]; do
	grep -qF "$page" <(tr -s '[:space:]' '\n' <man/Local.mk | sed 's|%D%|man|') ||
		{ echo "$page: not in man/Local.mk"; failed=1; }
	head -n 1 "$page" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
		{ echo "$page:1: the SPDX line must come first"; failed=1; }
done
exit "$failed"
