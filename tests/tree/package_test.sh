#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# package_test.sh FOLDER TESTDATA: what the Debian packages in FOLDER must say and
# hold; tools run from where they are unpacked with the library.
set -euo pipefail

folder=$(realpath "$1")
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0
fail() {
  echo "package_test: $1" >&2
  failures=$((failures + 1))
}

package=$folder/$(cd "$folder" && ls pdkit_*.deb)
library=$folder/$(cd "$folder" && ls libpd0_*.deb)
development=$folder/$(cd "$folder" && ls libpd-dev_*.deb)
field() { dpkg-deb -f "$1" "$2"; }
for deb in "$package" "$library" "$development"; do
  [ "$(field "$deb" Architecture)" = "$(dpkg --print-architecture)" ] || fail "$deb: Architecture is '$(field "$deb" Architecture)'"
  for name in Version Maintainer Installed-Size Description; do
    [ -n "$(field "$deb" $name)" ] || fail "$deb: $name is missing"
  done
  dpkg-deb -c "$deb" >"$dir/list"
  if grep -vE ' root/root ' "$dir/list"; then fail "$deb: files do not belong to root"; fi
  if grep -E '^-.w..w|^-....w..w' "$dir/list"; then fail "$deb: files that others may write"; fi
  name=$(field "$deb" Package)
  for file in copyright changelog.gz; do
    grep " ./usr/share/doc/$name/$file$" "$dir/list" >/dev/null || fail "$name has no $file"
  done
  dpkg-deb -c "$deb" | awk '$1 !~ /^d/ { print $6 }' >>"$dir/files"
done
[ -z "$(sort "$dir/files" | uniq -d)" ] || fail "packages share files: $(sort "$dir/files" | uniq -d)"
[ "$(field "$package" Section) $(field "$library" Section) $(field "$development" Section)" = "science libs libdevel" ] ||
  fail "Sections"
for tool in check-naninf convert eval export profile quant train; do
  field "$package" Description | grep "pd-$tool" >/dev/null || fail "Description has no pd-$tool"
done
version=$(field "$package" Version)
for deb in "$package" "$development"; do
  field "$deb" Depends | grep -F "libpd0 (= $version)" >/dev/null || fail "$deb does without libpd0: $(field "$deb" Depends)"
done
# Found by dpkg-shlibdeps: among others the C++ library, oneDNN, protobuf.
for needed in libstdc++6 libdnnl libprotobuf libgomp1; do
  field "$library" Depends | grep "$needed" >/dev/null || fail "Depends has no $needed: $(field "$library" Depends)"
done
dpkg-deb -I "$library" shlibs | grep '^libpd 0 libpd0' >/dev/null || fail "libpd0 has no shlibs"

holds() { # PACKAGE FILE...
  dpkg-deb -c "$1" >"$dir/list"
  for file in "${@:2}"; do
    grep " ./usr/$file\( \|$\)" "$dir/list" >/dev/null || fail "$file is not in $1"
  done
}
holds "$package" bin/pd-{check-naninf,convert,eval,export,profile,quant,train} \
  share/man/man1/pd-train.1.gz share/man/man5/pd-job.5.gz share/man/man7/pd-upgrade.7.gz \
  share/bash-completion/completions/pd-train share/zsh/vendor-completions/_pd-train \
  share/fish/vendor_completions.d/pd-train.fish share/doc/pdkit/README.md
holds "$library" lib/libpd.so.0 lib/libpd_onnx.so.0 lib/libpaddle_inference.so.0 lib/libpd_run.so.0
holds "$development" lib/lib{pd,paddle_inference,paddle_inference_c,pd_run}.so lib/libpd_run.a \
  include/pdkit/paddle_compat/paddle_inference_api.h include/pdkit/paddle_compat/pd_inference_api.h \
  include/pdkit/libcore/base/error.h include/pd_run.h lib/pkgconfig/pdkit{,-inference,-run}.pc \
  lib/cmake/pdkit/pdkitConfig.cmake

dpkg-deb -x "$library" "$dir/root"
dpkg-deb -x "$package" "$dir/root"
cd "$dir"
ln -s "$testdata" testdata
export PATH=$dir/root/usr/bin:$PATH
ldd "$dir/root/usr/bin/pd-train" | grep "libpd.so.0 => $dir/root/" >/dev/null || fail "the tools take another libpd"
pd-train -q -c testdata/jobs/lenet_mnist.pbtxt --out run --steps 2 >/dev/null || fail "pd-train: exit $?"
pd-export -q -m run --to onnx -o lenet.onnx >/dev/null || fail "pd-export: exit $?"
pd-convert -q --inspect lenet.onnx >/dev/null || fail "pd-convert: exit $?"
[ $failures -eq 0 ]
