#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# passes_test.sh BIN TESTDATA: --dump-passes writes a file for each pass and
# program, which differs from the one before where the pass did something;
# --disable-pass leaves a pass out and the numbers nearly as they were.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0
fail() {
  echo "passes_test: $1" >&2
  failures=$((failures + 1))
}

# equal WHAT GOT WANTED
equal() {
  [ "$2" = "$3" ] || fail "$1: '$2'; expected '$3'"
}
# near WHAT A B: two numbers, to five digits.
near() {
  jq -en "(($2) - ($3) | fabs) <= 1e-5 * (($3) | fabs)" >/dev/null || fail "$1: $2; expected nearly $3"
}
# files DIR: their names.
files() {
  (cd "$1" && echo *)
}
# fired DIR [LABEL-]: the passes that changed the program.
fired() {
  local before=$1/${2:-}00-original.txt after name passes=()
  for after in "$1/${2:-}"[0-9][0-9]-*.txt; do
    if ! cmp -s "$before" "$after"; then
      name=${after##*/"${2:-}"??-}
      passes+=("${name%.txt}")
    fi
    before=$after
  done
  echo "${passes[*]}"
}
# fails STATUS PATTERN COMMAND...
fails() {
  local want=$1 pattern=$2 got=0
  shift 2
  "$@" >out.txt 2>err.txt || got=$?
  if [ $got -ne "$want" ] || ! grep -qE -- "$pattern" err.txt; then
    fail "'$*' exits $got, expected $want; '$(cat err.txt)' should match '$pattern'"
  fi
}

# In the order of the pipeline, as the tool lists them; their files are numbered.
pd-train -c job.pbtxt --disable-pass no_such_pass_at_all 2>list.txt && fail "there is a pass 'no_such_pass_at_all'"
read -ra passes < <(sed -n "s/.*'no_such_pass_at_all' is none of \([a-z0-9_, ]*[a-z0-9_]\).*/original, \1/p" list.txt | tr -d ,)
[ ${#passes[@]} -gt 10 ] || fail "the list of passes is '${passes[*]}' in $(cat list.txt)"
all=()
for i in "${!passes[@]}"; do all+=("$(printf '%02d' "$i")-${passes[i]}"); done
conv=fuse_conv_bias_act gemm=fuse_gemm_epilogue merge=merge_updates
# names LABEL- [WITHOUT]: the files of a program.
names() {
  local pass list=()
  for pass in "${all[@]}"; do
    [ "${pass#??-}" = "${2:-}" ] || list+=("${1:-}$pass.txt")
  done
  echo "${list[*]}"
}

cat >job.pbtxt <<EOF
name: "small"
model {
  input { name: "image" shape: [-1, 1, 28, 28] }
  layer { conv2d { out_channels: 4 kernel_size: 5 stride: 3 } }
  layer { relu {} }
  layer { flatten {} }
  layer { linear { out_features: 16 } }
  layer { relu {} }
  layer { linear { out_features: 10 } }
}
loss { cross_entropy {} }
metric { accuracy {} }
optimizer { adam { learning_rate: 0.01 } }
data {
  train {
    mnist {
      image_path: "$testdata/mnist/train-images-idx3-ubyte.gz"
      label_path: "$testdata/mnist/train-labels-idx1-ubyte.gz"
    }
    transform { to_tensor {} }
    batch_size: 32
  }
  eval {
    mnist {
      image_path: "$testdata/mnist/t10k-images-idx3-ubyte.gz"
      label_path: "$testdata/mnist/t10k-labels-idx1-ubyte.gz"
    }
    transform { to_tensor {} }
    batch_size: 500
  }
}
EOF

# A job: its programs, each with a name, whatever is done with it.
pd-train -q -c job.pbtxt --out run --steps 5 --dump-passes all --format json >all.json
equal "files of a run" "$(files all)" "$(names eval-) $(names startup-) $(names train-)"
equal "training" "$(fired all train-)" "$conv $gemm $merge"
equal "evaluation" "$(fired all eval-)" "$conv $gemm"
equal "startup" "$(fired all startup-)" ""
grep -q ' = fused_conv2d(' all/train-*-$conv.txt || fail "no fused_conv2d"
grep -q ' = conv2d(' all/train-00-original.txt || fail "no conv2d in the original"
pd-train -q -c job.pbtxt --bench 0 --dump-passes bench >bench.json
equal "files of --bench" "$(files bench)" "$(names startup-) $(names train-)"
diff all/train-*-$merge.txt bench/train-*-$merge.txt >/dev/null || fail "--bench runs another program"
pd-train -q -c job.pbtxt --dry-run --dump-passes dry >dry.txt
equal "files of --dry-run" "$(files dry)" "$(names eval-) $(names train-)"

# Each pass off: the other passes fire, and the training is the same.
pd-eval -q -m run --out predictions.npz --dump-passes eval >out.txt
equal "files of an evaluation" "$(files eval)" "$(names)"
equal "passes of an evaluation" "$(fired eval)" "$conv $gemm"
for off in $conv $gemm $merge; do
  cp -r all "$off" # what an earlier run left
  pd-train -q -c job.pbtxt --out "run-$off" --steps 5 --disable-pass "$off" --dump-passes "$off" --format json >off.json
  equal "files without $off" "$(files "$off")" \
    "$(names eval- "$off") $(names startup- "$off") $(names train- "$off")"
  equal "training without $off" "$(fired "$off" train-)" "$(echo " $conv $gemm $merge " | sed "s/ $off / /; s/^ //; s/ $//")"
  near "loss without $off" "$(jq .eval.loss off.json)" "$(jq .eval.loss all.json)"
  pd-eval -q -m run --disable-pass "$off" --dump-passes "eval-$off" --expect predictions.npz \
    --rtol 1e-5 --atol 1e-5 >out.txt || fail "pd-eval --disable-pass $off: $(cat out.txt)"
  equal "files of an evaluation without $off" "$(files "eval-$off")" "$(names "" "$off")"
done
pd-train -q -c job.pbtxt --bench 0 --disable-pass "$conv" --disable-pass "$gemm" --disable-pass "$merge" >none.json
near "first loss without passes" "$(jq .first_value none.json)" "$(jq .first_value bench.json)"

# Saved programs: PaddlePaddle's, one and two of them.
net=$testdata/train/lenet_adam
for off in '' $gemm $merge; do
  out=()
  [ -z "$off" ] || out=(--disable-pass "$off")
  pd-train -q --program "$net/main.pdmodel" --init "$net/init" --batches "$net/batches.npz" --loss mean_1.tmp_0 \
    --log-json - --dump-passes "saved-$off" "${out[@]}" >"losses-$off.jsonl"
  equal "files of a saved program without '$off'" "$(files "saved-$off")" "$(names train- "$off")"
  near "loss of step 6 without '$off'" "$(jq 'select(.step == 6).loss' "losses-$off.jsonl")" \
    "$(jq 'select(.step == 6).loss' losses-.jsonl)"
done
equal "a saved program" "$(fired saved- train-)" "$gemm $merge"
net=$testdata/train/gan_two_programs
pd-train -q --program "$net/main0.pdmodel" --program "$net/main1.pdmodel" --startup "$net/startup.pdmodel" \
  --batches "$net/batches.npz" --loss tmp_0,mean_2.tmp_0 --dump-passes two --steps 1 >out.txt
equal "files of two programs" "$(files two)" "$(names startup-) $(names train1-) $(names train2-)"
cmp -s two/train1-00-original.txt two/train2-00-original.txt && fail "two programs are one"

# A model: what was fed, what is timed, what is exported.
model=$testdata/deploy/cifar_resnet
feed=$testdata/deploy/cifar_resnet-feed.npz
pd-eval -q -m "$model" --feed "$feed" --out answers.npz --dump-passes fed
equal "files of --feed" "$(files fed)" "$(names)"
equal "passes of --feed" "$(fired fed)" "fold_batch_norms $conv fuse_conv_residual $gemm"
pd-eval -q -m "$model" --feed "$feed" --expect answers.npz --rtol 1e-4 --atol 1e-5 --disable-pass fold_batch_norms >out.txt ||
  fail "--feed without folding: $(cat out.txt)"
pd-eval -q -m "$model" --feed "$feed" --expect answers.npz --rtol 1e-5 --atol 1e-6 --disable-pass "$gemm" >out.txt ||
  fail "--feed --disable-pass: $(cat out.txt)"
pd-eval -q -m "$model" --bench 0 --disable-pass "$gemm" --dump-passes timed >out.txt
equal "files of --bench" "$(files timed)" "$(names "" "$gemm")"
all=(00-original 01-fold_batch_norms)
pd-export -q -m "$model" --optimize --dump-passes folded -o out/folded >out.txt
equal "files of --optimize" "$(files folded)" "$(names)"
equal "--optimize" "$(fired folded)" "fold_batch_norms"
pd-export -q -m "$model" --optimize --disable-pass fold_batch_norms --dump-passes plain -o out/plain >out.txt
equal "files without folding" "$(files plain)" "$(names "" fold_batch_norms)"
pd-export -q -m "$model" -o out/simple >out.txt
cmp -s out/plain.pdmodel out/simple.pdmodel || fail "--disable-pass fold_batch_norms changes the model"
cmp -s out/folded.pdmodel out/simple.pdmodel && fail "--optimize does not change the model"

# Wrong use.
unknown="--disable-pass': 'fuse_gem_epilogue' is none of .*did you mean 'fuse_gemm_epilogue'"
fails 2 "$unknown" pd-train -c job.pbtxt --out new --disable-pass fuse_gem_epilogue
fails 2 "$unknown" pd-eval -m run --disable-pass fuse_gem_epilogue
fails 2 "'fold_norms' is none of fold_batch_norms" pd-export -m run -o new --optimize --disable-pass fold_norms
fails 2 "needs option '--optimize'" pd-export -m run -o new --disable-pass fold_batch_norms
fails 2 "needs option '--optimize'" pd-export -m run -o new --dump-passes dumps
fails 2 "cannot go together" pd-train -c job.pbtxt --summary --dump-passes dumps
fails 2 "does not go with --new" pd-train --new tabular-regression new --dump-passes dumps
fails 3 "job.pbtxt" pd-eval -m run --dump-passes job.pbtxt/dumps
[ ! -e new ] || fail "wrong use writes files"
[ $failures -eq 0 ]
