#!/bin/sh
# precompile.sh COMPILER ARGUMENTS...: runs it. Beside a precompiled header it leaves
# FILE.sum, a checksum of all headers in it. ccache takes that for the file
# (CCACHE_PCH_EXTSUM), which itself is another one in each clone: it holds paths.
set -e
"$@"
for argument; do
  [ "$previous" = -MF ] && dependencies=$argument
  [ "$previous" = -o ] && output=$argument
  previous=$argument
done
case $output in *.pch) ;; *) exit ;; esac
# All that stands in the list of dependencies but CMake's own files, which hold paths.
tr -s ' \\' '\n\n' <"$dependencies" | grep -v -e ':$' -e /cmake_pch -e '^$' |
  xargs sha256sum | cut -d ' ' -f 1 | sha256sum >"$output.sum"
