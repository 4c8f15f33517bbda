#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs a build into a temporary folder and builds a program against it, as a user would:
#     test_install.sh BUILD_FOLDER
# Then looks at the library: a versioned SONAME, and no symbol that does not start with tg_.
set -u
build=$1
here=$(dirname "$0")
passed=0
failed=0

check() { # check WHAT COMMAND...: counts, and says what failed
    what=$1
    shift
    if "$@" >"$root/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "test_install.sh: $what"
        cat "$root/log"
    fi
}

root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT

check "meson install" meson install -C "$build" --no-rebuild --quiet --destdir "$root"
pc=$(find "$root" -name tilegemm.pc)
library=$(find "$root" -name 'libtilegemm.so' -o -name 'libtilegemm.dylib' | head -n 1)
check "a tilegemm.pc is installed" test -n "$pc"
check "the library is installed" test -n "$library"
check "the header is installed" test -n "$(find "$root" -path '*/include/tilegemm.h')"
check "the program is installed" test -n "$(find "$root" -path '*/bin/tilegemm')"

export PKG_CONFIG_PATH="${pc%/*}"
export PKG_CONFIG_SYSROOT_DIR="$root"
flags=$(pkg-config --cflags --libs tilegemm)
check "pkg-config knows tilegemm" test -n "$flags"
# The flags are several words.
# shellcheck disable=SC2086
check "the program builds" ${CC:-cc} -std=c11 -Wall -Werror "$here/main.c" -o "$root/program" $flags
answer=$(LD_LIBRARY_PATH="${library%/*}" "$root/program")
check "the program multiplies, not: $answer" test "$answer" = "4 5 10 11"
LD_LIBRARY_PATH="${library%/*}" check "the installed command runs" \
    "$(find "$root" -path '*/bin/tilegemm')" --version

strangers=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -v '^tg_')
check "only tg_ symbols are exported, not: $strangers" test -z "$strangers"
for symbol in $(sed -n 's/.*\(tg_[a-z_]*\)(.*/\1/p' "$here/../../include/tilegemm.h" |
    grep -v '^tg_[a-z]*$' | sort -u); do
    case $(grep -c "TG_API.*$symbol(" "$here/../../include/tilegemm.h") in 0) continue ;; esac
    check "$symbol is exported" sh -c "nm -D --defined-only '$library' | grep -q ' T $symbol\$'"
done
soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
check "the SONAME has a version, not: $soname" expr "$soname" : 'libtilegemm\.so\.[0-9]'
check "the library depends on its SONAME" test -e "${library%/*}/$soname"

echo "$passed passed, $failed failed"
test "$failed" -eq 0
