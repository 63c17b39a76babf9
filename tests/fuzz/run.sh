#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh - builds the fuzz targets with clang and runs each for some seconds, as many at
# a time as there are processors.
#
# usage: run.sh [SECONDS [TARGET...]]
# environment: top_srcdir, top_builddir (configured and built: rules_builtin.c),
# FUZZ_CORPUS (a folder that keeps what was found from run to run)
#
# Exits 77 without clang's fuzzer, 1 when a target found something; the input that
# did it is left in top_builddir/fuzz/.

set -u
src=$(cd "${top_srcdir:-.}" && pwd) || exit 1
build=$(cd "${top_builddir:-.}" && pwd) || exit 1
seconds=${1:-${FUZZ_SECONDS:-60}}
shift $(($# > 0))
targets=("$@")
out=$build/fuzz
corpus=${FUZZ_CORPUS:-$out/corpus}
flags=(-std=gnu11 -g -O1 -fno-omit-frame-pointer -D_GNU_SOURCE
	"-fsanitize=fuzzer-no-link,address,undefined"
	-fno-sanitize-recover=undefined -I"$src" -I"$build")

mkdir -p "$out/o" || exit 1
echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { return p == 0 && n < 0; }' \
	>"$out/try.c"
if ! clang -fsanitize=fuzzer,address "$out/try.c" -o "$out/try" 2>/dev/null; then
	echo "clang with libFuzzer is needed" >&2
	exit 77
fi
if [ ${#targets[@]} -eq 0 ]; then
	for f in "$src"/tests/fuzz/fuzz_*.c; do
		targets+=("$(basename "$f" .c)")
	done
fi

sources() {
	printf '%s\n' "$src"/common/*.c "$src"/diagnose/*.c "$src"/checkpoint/*.c \
		"$build"/diagnose/rules_builtin.c |
		grep -vE '/(verb_[a-z]+|action_[a-z]+|library|mkrules)\.c$'
}

# shellcheck disable=SC2317 # called by xargs below
compile() {
	local object
	object=$(basename "$(dirname "$1")")-$(basename "$1" .c).o
	[ "$out/o/$object" -nt "$1" ] && return 0
	clang "${flags[@]}" -include "$build/config.h" -c "$1" -o "$out/o/$object"
}
export -f compile
export out build
declare -p flags >"$out/flags"

# Objects are kept while no header has changed.
if [ ! -e "$out/stamp" ] || [ -n "$(find "$src" "$build/config.h" -name '*.h' \
	-newer "$out/stamp" -not -path '*/build-*' -print -quit)" ]; then
	rm -f "$out"/o/*.o
fi
touch "$out/stamp"

echo "building ${#targets[@]} targets in $out"
# shellcheck disable=SC2016 # for the inner shell
sources | xargs -P "$(nproc)" -I{} bash -c '. "$out/flags"; compile {}' || exit 1

libs=(-lpcre2-8 -lyaml -lcjson -lm -lz -lisal -lzstd -llzma -lxxhash -lpthread)
# shellcheck disable=SC2317 # called by xargs below
link() {
	clang "${flags[@]}" -fsanitize=fuzzer,address,undefined \
		-include "$build/config.h" "$src/tests/fuzz/$1.c" "$out"/o/*.o \
		"${libs[@]}" -o "$out/$1"
}
# All that a target says goes to its log; its status to a file.
# shellcheck disable=SC2317 # called by xargs below
fuzz() {
	local seeds=()
	mkdir -p "$corpus/$1"
	[ -d "$src/tests/fuzz/seeds/$1" ] && seeds=("$src/tests/fuzz/seeds/$1")
	echo "$1: $seconds s"
	(cd "$out" && timeout $((seconds + 120)) "./$1" \
		-max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 \
		-print_final_stats=0 -verbosity=0 -artifact_prefix="$out/$1-" \
		"$corpus/$1" "${seeds[@]}") >"$out/$1.log" 2>&1
	echo $? >"$out/$1.status"
}
export -f link fuzz
export src corpus seconds
declare -p flags libs >"$out/flags"

each_target() {
	# shellcheck disable=SC2016 # for the inner shell
	printf '%s\n' "${targets[@]}" |
		xargs -P "$(nproc)" -I{} bash -c '. "$out/flags"; '"$1"' {}'
}
for t in "${targets[@]}"; do
	rm -f "$out/$t.status"
done
each_target link || exit 1
each_target fuzz
bad=0
for t in "${targets[@]}"; do
	[ "$(cat "$out/$t.status")" = 0 ] && continue
	tail -n 60 "$out/$t.log"
	echo "$t: FAILED, see $out/$t-*" >&2
	bad=1
done
exit $bad
