#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# saved_training_test.sh BIN TESTDATA: a run of a training program that
# PaddlePaddle saved. The run keeps the programs: when the files are gone it is
# resumed to the same bytes, evaluated, exported and asked.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0
fail() {
  echo "saved_training_test: $1" >&2
  failures=$((failures + 1))
}
# says STATUS PATTERN COMMAND...: ends so, with this on an output.
says() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >out.log 2>err.log || got=$?
  [ $got -eq "$status" ] || fail "'$*' exits $got; expected $status: $(tail -n 2 err.log)"
  [ -z "$pattern" ] || grep -q -- "$pattern" out.log err.log || fail "'$*' does not say '$pattern' but: $(cat out.log err.log)"
}
mkdir jobs
cp "$testdata"/saved_training/{job.pbtxt,main.pdmodel,startup.pdmodel,init.pdparams,train.npz,eval.npz} jobs
train=(pd-train -c jobs/job.pbtxt --threads 2 -o data.train.shuffle=true)

# Seen before it is trained.
says 0 "^parameters " pd-train -c jobs/job.pbtxt --dry-run
says 0 '"mode":"train"' pd-train -c jobs/job.pbtxt --bench 0
says 2 "a saved program has no layers" pd-train -c jobs/job.pbtxt --summary

# A run that was never stopped, and one that goes on without the files.
says 0 "acc" "${train[@]}" --out whole --report --log visualdl,tensorboard
says 0 "" "${train[@]}" --out run --steps 7
mkdir gone
mv jobs/*.pd* gone
says 3 "jobs/main.pdmodel" pd-train -c jobs/job.pbtxt --out none
says 0 "" "${train[@]}" --out run --resume --steps 13
says 0 "" "${train[@]}" --out run --resume
for file in model.pdmodel model.pdparams model.pdopt; do
  cmp whole/checkpoints/step-20/$file run/checkpoints/step-20/$file || fail "$file of a resumed run differs"
done
[ "$(grep -c '"lr":0\.' run/log.jsonl)" -eq 20 ] || fail "log.jsonl has not the program's 20 rates"
# Other evaluations came between.
diff <(grep '"loss":' whole/log.jsonl | grep '"lr"') <(grep '"lr"' run/log.jsonl) || fail "a resumed run ends otherwise"
for file in summary.json report.html job.pbtxt latest; do
  [ -s whole/$file ] || fail "there is no whole/$file"
done
ls whole/vdlrecords.* whole/events.out.tfevents.* >/dev/null || fail "there are no logs for VisualDL and TensorBoard"
says 2 "was trained by another job: .*program.loss" pd-train -c jobs/job.pbtxt -o program.loss=other --out run --resume

# The run answers without them too.
says 0 "acc" pd-eval -m run
says 0 "" pd-eval -m run --format json --out answers.npz
cp out.log of-run
# Passes for inference change last bits.
said() { grep -o "\"$1\":[0-9]*\.[0-9]\{5\}" | tail -n 1; }
for name in loss acc; do
  [ "$(said $name <of-run)" = "$(grep '"eval"' run/log.jsonl | said $name)" ] ||
    fail "pd-eval says another $name than the run"
done
says 0 "" pd-eval -m run --predict jobs/eval.npz --out answers.csv
[ "$(wc -l <answers.csv)" -eq 37 ] || fail "there are not 36 predictions"
for to in paddle onnx; do
  model=exported
  [ $to != onnx ] || model=exported.onnx
  says 0 "inputs image, outputs " pd-export -m run --to $to -o $model
  says 0 "" pd-eval -c run/job.pbtxt -m $model --format json
  diff <(grep -o '"acc":[0-9.]*' of-run) <(grep -o '"acc":[0-9.]*' out.log) || fail "$to answers otherwise"
done
says 0 "relu" pd-convert exported.pdmodel - --to text
grep -q "adam\|_grad\|increment\|softmax_with_cross_entropy" out.log && fail "the export has ops of training"
says 0 "outputs batch_norm_0.tmp_3" pd-export -m run --fetch batch_norm_0.tmp_3 -o inner

# A run of its own, from the run's job and with the run's weights.
says 0 "taken" pd-train -c run/job.pbtxt --out weights --init-from run --steps 1
says 0 "" pd-train -c run/job.pbtxt -o init= --out anew --steps 3
says 0 "" pd-profile -c run/job.pbtxt --timer-only --steps 20
says 0 "" pd-check-naninf -c run/job.pbtxt -o init= --steps 3

says 0 "" pd-train -c run/job.pbtxt -o init= --out checked --check-nan-inf --steps 2

# What has no meaning beside a program.
for field in optimizer.sgd.learning_rate=1 'quant.weight_bits=8'; do
  says 2 "cannot stand beside 'program'" pd-train -c run/job.pbtxt --out none -o "$field"
done

# In halves, resumed to the same bytes too, near float32's losses.
cp gone/*.pd* jobs
losses() { grep -o '"loss":[^,}]*,"lr"' "$1/log.jsonl" | grep -o '[0-9][^,]*'; }
for half in bfloat16 float16 O2; do
  half_run=("${train[@]}" --amp O1 --amp-dtype "$half")
  [ $half != O2 ] || half_run=("${train[@]}" --amp O2 --amp-dtype bfloat16)
  says 0 "acc" "${half_run[@]}" --out $half
  says 0 "" "${half_run[@]}" --out $half-again --steps 9
  says 0 "" "${half_run[@]}" --out $half-again --resume
  for file in model.pdparams model.pdopt; do
    cmp $half/checkpoints/step-20/$file $half-again/checkpoints/step-20/$file || fail "$file of a resumed run in $half differs"
  done
  paste <(losses whole) <(losses $half) | awk '
    { d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d; other += d > 0 }
    END { print NR, other, worst; exit !(NR == 20 && other > 10 && worst < 0.1) }' >near.log ||
    fail "the losses in $half are not float32's: $(cat near.log)"
done

# Sequences: resumed to the same bytes, evaluated, and asked.
cp "$testdata"/saved_sequences/{job.pbtxt,main.pdmodel,startup.pdmodel,init.pdparams,train.jsonl,eval.jsonl} jobs
says 0 "acc" "${train[@]}" --out sequences
says 0 "" "${train[@]}" --out sequences-again --steps 7
mkdir sequences-gone
mv jobs/*.pd* sequences-gone
says 0 "" "${train[@]}" --out sequences-again --resume
for file in model.pdparams model.pdopt; do
  cmp sequences/checkpoints/step-20/$file sequences-again/checkpoints/step-20/$file || fail "$file of a resumed run over sequences differs"
done
says 0 "acc" pd-eval -m sequences
says 0 "" pd-eval -m sequences --predict jobs/eval.jsonl --out answers.csv
[ "$(wc -l <answers.csv)" -eq 21 ] || fail "there are not 20 predictions of sequences"
says 0 "" pd-export -m sequences -o exported-sequences

# Programs alone still take arrays.
says 2 "is for a job" pd-train --program gone/main.pdmodel --startup gone/startup.pdmodel --batches x.npz --loss l --out none
[ $failures -eq 0 ]
