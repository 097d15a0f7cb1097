#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# package_test.sh PACKAGE TESTDATA: what a Debian package must say and hold; its
# tools run from where it is unpacked.
set -euo pipefail

package=$(realpath "$1")
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0
fail() {
  echo "package_test: $1" >&2
  failures=$((failures + 1))
}

field() { dpkg-deb -f "$package" "$1"; }
[ "$(field Package)" = pdkit ] || fail "Package is '$(field Package)'"
[ "$(field Architecture)" = "$(dpkg --print-architecture)" ] || fail "Architecture is '$(field Architecture)'"
[ "$(field Section)" = science ] || fail "Section is '$(field Section)'"
for name in Version Maintainer Installed-Size Description; do
  [ -n "$(field $name)" ] || fail "$name is missing"
done
for tool in check-naninf convert eval export profile quant train; do
  field Description | grep "pd-$tool" >/dev/null || fail "Description has no pd-$tool"
done
# Found by dpkg-shlibdeps: among others the C++ library, oneDNN, protobuf.
for library in libstdc++6 libdnnl libprotobuf libgomp1; do
  field Depends | grep "$library" >/dev/null || fail "Depends has no $library: $(field Depends)"
done
dpkg-deb -c "$package" >"$dir/list"
if grep -vE ' root/root ' "$dir/list"; then fail "files do not belong to root"; fi
if grep -E '^-.w..w|^-....w..w' "$dir/list"; then fail "files that others may write"; fi
for file in usr/bin/pd-check-naninf usr/bin/pd-convert usr/bin/pd-eval usr/bin/pd-export usr/bin/pd-profile usr/bin/pd-quant usr/bin/pd-train usr/lib/libpd.so.0 \
  usr/lib/libpaddle_inference.so.0 usr/lib/libpaddle_inference_c.so \
  usr/include/pdkit/paddle_compat/paddle_inference_api.h usr/include/pdkit/paddle_compat/pd_inference_api.h \
  usr/lib/pkgconfig/pdkit-inference.pc usr/lib/pkgconfig/pdkit.pc usr/lib/cmake/pdkit/pdkitConfig.cmake usr/include/pdkit/libcore/base/error.h \
  usr/share/man/man1/pd-train.1.gz usr/share/man/man5/pd-job.5.gz usr/share/doc/pdkit/copyright \
  usr/share/doc/pdkit/changelog.gz usr/share/bash-completion/completions/pd-train \
  usr/share/zsh/vendor-completions/_pd-train usr/share/fish/vendor_completions.d/pd-train.fish; do
  grep " ./$file\( \|$\)" "$dir/list" >/dev/null || fail "$file is not in the package"
done

dpkg-deb -x "$package" "$dir/root"
cd "$dir"
ln -s "$testdata" testdata
export PATH=$dir/root/usr/bin:$PATH
ldd "$dir/root/usr/bin/pd-train" | grep "libpd.so.0 => $dir/root/" >/dev/null || fail "the tools take another libpd"
pd-train -q -c testdata/jobs/lenet_mnist.pbtxt --out run --steps 2 >/dev/null || fail "pd-train: exit $?"
pd-export -q -m run --to onnx -o lenet.onnx >/dev/null || fail "pd-export: exit $?"
pd-convert -q --inspect lenet.onnx >/dev/null || fail "pd-convert: exit $?"
[ $failures -eq 0 ]
