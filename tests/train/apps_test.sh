#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# apps_test.sh BIN TESTDATA APP: a short run of an application of
# testdata/jobs/apps learns: the mean of the first five losses is above one
# number, that of the last five below another, where losses say something; some
# must reach a result, too.
set -euo pipefail

export PATH=$1:$PATH
jobs=$2/jobs/apps
app=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
  echo "apps_test: $app: $*" >&2
  exit 1
}
# Application, steps, losses at first (above) and at last (below; -: they are
# those of what was just tried), what the evaluation is to come to (-: there is
# none), changes of the job.
table() {
  cat <<'ROWS'
actor_critic         200  -     -     episode_return>=100  data.eval.environment.episodes=20
addition             150  2     1.4   -
advantage_actor_critic 800 -    -     episode_return>=80  data.eval.environment.episodes=20
anomaly              200  0.3   0.04  auc>=0.9
cifar10              30   2.2   2.1   -                  data.train.batch_size=16 optimizer.lr.cosine_annealing_decay.learning_rate=0.01
ddpg                 4000 -     -     episode_return>=-400  data.eval.environment.episodes=20
distillation         100  28    21    teacher_acc>=0.97  data.eval.subset.range=0:500
dynamic_graph        300  60    20    loss<=12
gan                  40   1.95  1.85  -                  data.train.batch_size=16
hello_paddle         5000 300   0.1   loss<=0.05
high_level_api       100  1.3   0.45  acc>=0.9
image_search         40   2.8   2.5   -                  data.train.batch_size=32
keypoints            40   0.3   0.1   -
linear_regression    600  300   60    mse<=30
metric_learning      300  0.5   0.25  -                  data.train.batch_size=64
mnist                200  2     0.8   acc_top1>=0.85
ngram                60   7.8   6.5   -                  data.train.batch_size=8
ocr                  20   4     2.8   -                  data.train.batch_size=8
point_cloud          40   1.3   0.6   -
recommendation       200  3.8   2.9   -
save_and_load        30   6     4     -
segmentation         24   2     1.7   -                  data.train.batch_size=4
super_resolution     20   0.02  0.01  -                  data.train.batch_size=8
text_classification  200  0.68  0.6   -
translation          60   3.8   2.2   -
vae                  60   400   260   -                  data.train.batch_size=64
word_vectors         200  0.65  0.5   acc>=0.8
ROWS
}
row=$(table | grep "^$app ") || fail "no row of the table is about it"
read -r _ steps first last result changes <<<"$row"
options=()
for change in $changes; do options+=(-o "$change"); done
if [ "$result" = - ]; then
  options+=(-o data.eval=)
else
  options+=(--require "$result")
fi
# An application without a job of its own says in its Makefile whose it runs.
job=$jobs/$app/$(sed -n 's/^JOB = //p' "$jobs/$app/Makefile")
[ -f "$job" ] || job=$jobs/$app/job.pbtxt
# CIFAR-10 is not here.
[ "$app" != cifar10 ] || options+=(-o "data.train.cifar10.data_file=[\"$jobs/image_search/small.bin.gz\"]")
# An environment is compiled here, not beside its source.
program=$(sed -n 's/^ *command: "\.\/\(.*\)"$/\1/p' "$job" | sort -u)
if [ -n "$program" ]; then
  cc -O2 -o "$program" "$jobs"/*/"$program.c" -lm
  for set in train eval; do options+=(-o "data.$set.environment.command=$dir/$program"); done
fi
pd-train -q -c "$job" --out run --steps "$steps" \
  -o train.log.every_steps=1 "${options[@]}" >out.txt || fail "$(cat out.txt)"
if [ "$first" != - ]; then
  read -r begin end <<<"$(jq -c 'select(.loss) | .loss' run/log.jsonl |
    awk '{ x[NR] = $1 } END { for (i = 1; i <= 5; ++i) { a += x[i]; b += x[NR + 1 - i] }
           print a / 5, b / 5 }')"
  awk -v a="$begin" -v b="$end" -v from="$first" -v to="$last" \
    'BEGIN { exit !(a > from && b < to) }' ||
    fail "the losses go from $begin to $end, not from $first to $last"
fi

# A sentence is enough for its translation; the class of a picture, which only
# training reads, is no input of the exported network.
if [ "$app" = translation ]; then
  pd-eval -q --predict -m run "$jobs/translation/sentences.txt" --format json >answers.jsonl || fail "no translation"
  [ "$(wc -l <answers.jsonl)" = "$(wc -l <"$jobs/translation/sentences.txt")" ] || fail "$(cat answers.jsonl)"
fi
if [ "$app" = image_search ]; then
  pd-export -q -m run -o net
  [ "$(pd-convert --inspect net.pdmodel --format json | jq -c '[.inputs[].name]')" = '["image"]' ] || fail "$(pd-convert --inspect net.pdmodel)"
fi

# The autoencoder draws in training and not in evaluation.
if [ "$app" = vae ]; then
  evaluate() {
    pd-eval -q -m run -c "$jobs/vae/job.pbtxt" --format json --seed "$1" | jq .loss
  }
  [ "$(evaluate 1)" = "$(evaluate 2)" ] || fail "evaluation draws"
fi

# PaddlePaddle's manual (practices, "hello paddle" of 2.3) begins with this
# weight and ends at 9.768564 and 2.0181003.
parameters() { pd-convert --inspect "$1" --format json | jq -r '.tensors[] | select(.name | startswith("linear")) | .mean * 1e5 | round'; }
if [ "$app" = hello_paddle ]; then
  weight='model.layer[linear].linear.weight_attr.initializer.constant.value'
  pd-train -q -c "$job" --out manual -o "$weight=0.079525887966156" >out.txt || fail "$(cat out.txt)"
  [ "$(parameters manual | paste -sd' ')" = "976856 201810" ] || fail "the fare is $(parameters manual)"
  [[ $(jq 'select(.step == 5000 and .train).train.loss' manual/log.jsonl) = 0.0202036* ]] || fail "$(tail -n 1 manual/log.jsonl)"
fi

# 32 principal components of the training pictures leave 0.016849 of the others.
if [ "$app" = dynamic_graph ]; then
  pd-train -q -c "$jobs/dynamic_graph/shared.pbtxt" --out shared -o train.epochs=2 --require 'loss<=0.02' >out.txt || fail "$(cat out.txt)"
  pd-eval -q -m shared --require 'loss>=0.0168' >out.txt || fail "better than is possible: $(cat out.txt)"
fi

# A training goes on from what was saved as if nothing had been; weights alone
# are a good beginning of another.
if [ "$app" = save_and_load ]; then
  steps_to() { pd-train -q -c "$job" --out part --steps "$@" -o train.log.every_steps=1 -o data.eval= >out.txt || fail "$(cat out.txt)"; }
  steps_to 13
  steps_to 30 --resume
  for file in "$dir"/run/checkpoints/step-30/*.pd*; do
    cmp "$file" "part/checkpoints/step-30/$(basename "$file")" || fail "$(basename "$file") differs"
  done
  pd-convert run lenet.safetensors >out.txt 2>&1 || fail "$(cat out.txt)"
  for saved in run lenet.safetensors; do
    rm -rf again
    pd-train -q -c "$job" --out again --init-from "$saved" --steps 1 -o train.log.every_steps=1 -o data.eval= >out.txt || fail "$(cat out.txt)"
    [ "$(jq -s '.[0].loss < 4' again/log.jsonl)" = true ] || fail "$saved: $(cat again/log.jsonl)"
  done
fi
