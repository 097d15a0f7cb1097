#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# completion_test.sh SHARE BIN TESTDATA: what the shells offer. bash is asked
# by its completion function and by keys typed at a terminal; zsh and fish,
# where installed, by keys and by `complete -C`.
set -euo pipefail

share=$1
export PATH=$2:$PATH
testdata=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir runs
cp "$testdata/jobs/lenet_mnist.pbtxt" job.pbtxt
failures=0

fail() {
  echo "completion_test: $1" >&2
  failures=$((failures + 1))
}

# The words that readline would make of a line, and what the function answers.
# compopt works only under readline.
compopt() { :; }
offers() {
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  "_${1//-/_}"
  echo "${COMPREPLY[*]}"
}
# bash WANTED WORD...: exactly these offers.
bash_offers() {
  local wanted=$1 got
  shift
  got=$(offers "$@")
  [ "$got" = "$wanted" ] || fail "bash: '$*' offers '$got'; expected '$wanted'"
}
for tool in pd-check-naninf pd-convert pd-eval pd-export pd-profile pd-quant pd-train; do
  # shellcheck source=/dev/null
  source "$share/bash-completion/completions/$tool"
  complete -p "$tool" >/dev/null || fail "bash: $tool has no completion"
  # Every option that the help shows is offered, and nothing else.
  shown=$("$tool" --help | grep -oE '^  (-[a-z], |    )?--[a-z_-]+|^  -[a-z]\b' | grep -oE -- '-[a-z_-]+' | sort -u)
  got=$(offers "$tool" - | tr ' ' '\n' | sort -u)
  [ "$got" = "$shown" ] || fail "bash: $tool offers $(diff <(echo "$got") <(echo "$shown") || true)"
done
bash_offers '--resume' pd-train --res
bash_offers 'text json' pd-train --format ''
bash_offers 'json' pd-eval --format = j
bash_offers 'text json' pd-eval --format =
bash_offers 'paddle paddle-fake paddle-legacy' pd-export --to pa
bash_offers 'CPUTotal CPUAvg CPUMax CPUMin' pd-profile --sorted-by C
bash_offers 'FLAGS_check_nan_inf=' pd-train --flags FLAGS_check
bash_offers 'job.pbtxt' pd-train -c j
bash_offers 'runs' pd-train --out ''
bash_offers 'job.pbtxt runs' pd-eval -m ''
bash_offers 'job.pbtxt' pd-convert --protocol 2 jo
bash_offers '' pd-train --steps ''
bash_offers 'optimizer.' pd-train -o op
bash_offers 'optimizer.adamw.learning_rate= optimizer.adamw.lazy_mode=' pd-train -o optimizer.adamw.l
bash_offers 'optimizer.lr.linear_warmup.after.linear_warmup.after.' pd-eval -o optimizer.lr.linear_warmup.after.linear_warmup.a
bash_offers 'model.layer[conv1]. model.layer[conv2].' pd-train -c job.pbtxt -o 'model.layer[conv'
bash_offers 'model.layer[conv1].conv2d.kernel_size=' pd-train -c job.pbtxt -o 'model.layer[conv1].conv2d.k'
bash_offers 'true false' pd-train -o data.train.shuffle =
bash_offers 'job.pbtxt' pd-train -o data.train.mnist.image_path = j
bash_offers 'triangular2' pd-train -o optimizer.lr.cyclic.mode = triangular2
bash_offers '' pd-train -o no.such.

# keys SHELL...: types the line at the shell's terminal once it prompts, and
# ends the shell when the line's command has run.
keys() {
  rm -f typed.out
  : >terminal.log
  {
    await prompted
    printf '%s' "$line"
    await test -s typed.out
    printf 'exit\n'
  } | timeout 60 env TERM=dumb HOME="$dir" PS1='ready> ' script -qec "$*" /dev/null >terminal.log 2>&1 || true
}
prompted() { grep -q 'ready>' "$dir/terminal.log"; }
await() {
  for ((n = 0; n < 100; n++)); do
    "$@" && return
    sleep 0.2
  done
}
# typed SHELL: the keys have become the commands that were meant.
meant='pd-train --version --format json -c job.pbtxt -o data.train.shuffle=true'
typed() {
  local got
  got=$(sed 's/--format=/--format /' typed.out 2>&1 || true)
  [ "$got" = "$meant" ] || fail "$1: typed keys make '$got': $(tail -n 5 terminal.log)"
}
line=$'pd-train --vers\t --form\tjs\t -c jo\t-o data.train.shuf\tt\t> typed.out\n'
cat >rc <<END
PS1='ready> '
pd-train() { echo "pd-train \$*"; }
END
cat >bash.rc <<END
source $dir/rc
source $share/bash-completion/completions/pd-train
END
keys bash --noprofile --rcfile "$dir/bash.rc" -i
typed bash

if command -v zsh >/dev/null; then
  for tool in pd-check-naninf pd-convert pd-eval pd-export pd-profile pd-quant pd-train; do zsh -n "$share/zsh/site-functions/_$tool"; done
  cat >.zshrc <<END
source $dir/rc
fpath=($share/zsh/site-functions \$fpath)
autoload -Uz compinit
compinit -u -d $dir/zcompdump
END
  keys zsh -d -i
  typed zsh
fi
if command -v fish >/dev/null; then
  # fish_offers WANTED LINE: exactly these offers.
  fish_offers() {
    local got
    got=$(HOME=$dir fish --no-config -c "source $share/fish/vendor_completions.d/pd-train.fish; complete -C '$2'" | cut -f 1 | sort | paste -sd ' ')
    [ "$got" = "$1" ] || fail "fish: '$2' offers '$got'; expected '$1'"
  }
  for tool in pd-check-naninf pd-convert pd-eval pd-export pd-profile pd-quant pd-train; do fish -n "$share/fish/vendor_completions.d/$tool.fish"; done
  fish_offers '--resume' 'pd-train --res'
  fish_offers 'json text' 'pd-train --format '
  fish_offers 'job.pbtxt' 'pd-train -c j'
  fish_offers 'runs/' 'pd-train --out r'
  fish_offers '' 'pd-train --steps j'
  fish_offers 'optimizer.adamw.' 'pd-train -o optimizer.adamw'
  fish_offers 'data.train.shuffle=false data.train.shuffle=true' 'pd-train -o data.train.sh'
  fish_offers 'model.layer[conv1].conv2d.kernel_size=' 'pd-train -o model.layer[conv1].conv2d.k'
fi
[ $failures -eq 0 ]
