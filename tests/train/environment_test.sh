#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# environment_test.sh BIN TESTDATA: a network that acts learns the same bits
# twice, and where it goes on at the end of an epoch, with a memory and without;
# it is evaluated by its returns; a look at a job starts no program; a program
# that fails ends the training as it should, and nothing of it is left.
set -euo pipefail

export PATH=$1:$PATH
apps=$2/jobs/apps
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0

fail() {
  echo "environment_test: $*" >&2
  failures=$((failures + 1))
}
# expect STATUS PATTERN COMMAND...: PATTERN is in stderr.
expect() {
  local want=$1 pattern=$2 got=0
  shift 2
  "$@" >out.txt 2>err.txt </dev/null || got=$?
  [ $got -eq "$want" ] || fail "$*: exit $got, not $want: $(cat err.txt)"
  [ -z "$pattern" ] || grep -qE -- "$pattern" err.txt || fail "$*: no $pattern in $(cat err.txt)"
}
cc -O2 -o cartpole "$apps/actor_critic/cartpole.c" -lm
cc -O2 -o pendulum "$apps/ddpg/pendulum.c" -lm
for app in actor_critic advantage_actor_critic ddpg; do
  sed 's/out_features: \(64\|128\|256\)/out_features: 16/' "$apps/$app/job.pbtxt" >$app.pbtxt
done
set=data.train.environment
short=(-o train.log.every_steps=1 -o data.eval.environment.episodes=4)
train=(pd-train -q "${short[@]}")

# The same job gives the same bits; one that stops where an epoch ends goes on to
# them.
same() {
  cmp "$1/log.jsonl" "$2/log.jsonl" || fail "the logs of $1 and $2 differ"
  for file in model.pdparams experience.npz; do
    cmp "$1/checkpoints/$(cat "$1/latest")/$file" "$2/checkpoints/$(cat "$2/latest")/$file" ||
      fail "$file of $1 and $2 differs"
  done
}
for app in actor_critic advantage_actor_critic ddpg; do
  options=(-c "$app.pbtxt" -o "$set.batches=12" -o train.epochs=3)
  [ $app != ddpg ] || options+=(-o "$set.memory.size=300" -o "$set.memory.begin=250" -o "$set.memory.steps=8")
  expect 0 "" "${train[@]}" "${options[@]}" --out $app
  expect 0 "" "${train[@]}" "${options[@]}" --out again
  same $app again
  rm -rf again
  expect 0 "" "${train[@]}" "${options[@]}" --out again --steps 24
  expect 0 "" "${train[@]}" "${options[@]}" --out again --resume
  ! grep -q "stopped inside" err.txt || fail "$app: $(cat err.txt)"
  [ "$(cat again/latest)" = step-36 ] || fail "$app went on to $(cat again/latest)"
  cmp "$app/checkpoints/step-36/model.pdparams" again/checkpoints/step-36/model.pdparams ||
    fail "$app goes on to other weights"
  cmp "$app/checkpoints/step-36/experience.npz" again/checkpoints/step-36/experience.npz ||
    fail "$app goes on to other experience"
  # Inside an epoch it says that it cannot.
  rm -rf again
  expect 0 "" "${train[@]}" "${options[@]}" --out again --steps 17
  expect 0 "stopped inside epoch 2 and its environments begin new episodes" \
    pd-train "${short[@]}" "${options[@]}" --out again --resume
  [ "$(cat again/latest)" = step-36 ] || fail "$app went on to $(cat again/latest)"
  rm -rf again
  # Other seeds are other episodes.
  expect 0 "" "${train[@]}" "${options[@]}" --out again --seed 2
  ! cmp -s "$app/log.jsonl" again/log.jsonl || fail "$app: a seed changes nothing"
  rm -rf again
done
jq -es 'map(select(.episodes)) | length > 9 and all(.episode_return >= 8)' actor_critic/log.jsonl >/dev/null ||
  fail "no returns in the log: $(head -3 actor_critic/log.jsonl)"
jq -es 'map(.train | select(.episodes)) | length > 0 and all(.episode_return < 0)' ddpg/log.jsonl >/dev/null ||
  fail "no returns in the log: $(tail -3 ddpg/log.jsonl)"

# Evaluation gives the mean return, always of the same episodes.
jq -c 'select(.eval) | .eval.episode_return' actor_critic/log.jsonl | tail -1 >last.txt
expect 0 "" pd-eval -q -m actor_critic --format json --require 'episode_return>=8'
[ "$(jq .episode_return out.txt)" = "$(cat last.txt)" ] || fail "pd-eval: $(cat out.txt), not $(cat last.txt)"
expect 1 "" pd-eval -q -m actor_critic --require 'episode_return>=501'
expect 2 "an exported network does not act" sh -c \
  'pd-export -q -m actor_critic -o net && pd-eval -q -m net.pdmodel -c actor_critic/job.pbtxt'
[ "$(pd-convert --inspect net.pdmodel --format json | jq -c '[.inputs[].name]')" = '["observation"]' ] ||
  fail "inputs: $(pd-convert --inspect net.pdmodel)"

# A look starts nothing.
expect 0 "" pd-train -q -c actor_critic.pbtxt --dry-run -o $set.command='touch ran'
expect 0 "" pd-train -q -c actor_critic.pbtxt --summary -o $set.command='touch ran'
[ ! -e ran ] || fail "a look ran the program"

# What cannot be.
expect 2 "the network has no layer 'drown'" \
  pd-train -q -c actor_critic.pbtxt --out no -o $set.action.layer=drown
expect 2 "layer 'advantage' chooses from the observation alone" \
  pd-train -q -c actor_critic.pbtxt --out no -o $set.action.layer=advantage
expect 2 "records come in the order of the stream" \
  pd-train -q -c actor_critic.pbtxt --out no -o data.train.shuffle=true
expect 2 "give one of them" pd-train -q -c actor_critic.pbtxt --out no -o $set.episodes=3
expect 2 "an evaluation keeps no steps in memory" \
  pd-train -q -c ddpg.pbtxt --out no -o data.eval.environment.memory.size=10
expect 2 "cannot be repeated" pd-train -q -c actor_critic.pbtxt --out no --check-nan-inf
rm -rf no
expect 2 "the network is fed 'action' as int64\[500, 1\]; the data set gives float32" \
  pd-train -q -c actor_critic.pbtxt --out no -o $set.action.dtype=float32
expect 2 "layer 'actor.logits' gives float32; 'dtype' says int64" \
  pd-train -q -c actor_critic.pbtxt --out no -o $set.action.layer=actor.logits
rm -rf no
expect 3 "layer 'actor.fc2' gives float32\[1, 16\]; the actions of all environments are float32, 1 numbers" \
  pd-train -q -c ddpg.pbtxt --out no -o $set.action.layer=actor.fc2
rm -rf no
expect 3 "program './pendulum' environment 0 episode 1 step 0: field 'observation' has the shape \[3\]; the job says \[4\]" \
  pd-train -q -c actor_critic.pbtxt --out no -o $set.command=./pendulum
rm -rf no
expect 3 "environment 0 episode 1 step 0: it ended with status 127" \
  pd-train -q -c actor_critic.pbtxt --out no -o $set.command=no-such-program-7
rm -rf no
expect 3 "it has written nothing for 0.2 seconds" pd-train -q -c actor_critic.pbtxt --out no \
  -o $set.command='sleep 1000' -o $set.timeout=0.2

# A signal ends it while it waits for an answer, and the programs with it.
for signal in INT TERM; do
  rm -rf waiting pid
  # A background job ignores SIGINT unless it is a job of its own.
  set -m
  # shellcheck disable=SC2016
  pd-train -q -c actor_critic.pbtxt --out waiting -o $set.command='echo $$ >pid; exec sleep 1000' \
    >out.txt 2>err.txt </dev/null &
  trainer=$!
  set +m
  until [ -s pid ]; do sleep 0.05; done
  kill -$signal $trainer
  status=0
  wait $trainer || status=$?
  [ $status -eq $((128 + $(kill -l $signal))) ] ||
    fail "$signal: exit $status: $(cat err.txt)"
  ! kill -0 "$(cat pid)" 2>/dev/null || fail "$signal left the program"
done

[ $failures -eq 0 ] || exit 1
echo "environment_test: ok"
