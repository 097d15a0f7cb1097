#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What exported models say and do besides their network: outputs named by
# layers or --output-name, names of classes, softmax and sigmoid, and the data's
# arithmetic in front. Weights are written down, so answers follow by hand.
#   export_names_test.sh BIN TESTDATA
set -euo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "export_names_test: $*" >&2; exit 1; }
pd_export() { "$bin/pd-export" "$@" >out 2>err || fail "pd-export $*: $(cat err)"; }
refused() {
  local message=$1 got=0
  shift
  "$bin/pd-export" "$@" >out 2>err || got=$?
  [ $got -eq 2 ] || fail "pd-export $* exits $got"
  grep -qF -- "$message" err || fail "of $*: $(cat err)"
}
inspect() { "$bin/pd-convert" --inspect "$1" --format json 2>err || fail "--inspect $1: $(cat err)"; }
# array NAME DTYPE SHAPE BYTES: NAME.npz with one array.
array() {
  { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"; printf '%b' "$4"; } >"$1.npy"
  "$bin/pd-convert" "$1.npy" "$1.npz" >/dev/null
}
# answers MODEL FEED WANT
answers() {
  "$bin/pd-eval" -q -m "$1" --feed "$2.npz" --expect "$3.npz" --rtol 1e-5 --atol 1e-6 >out 2>err || fail "$1 answers otherwise: $(cat out err)"
}
still='optimizer { sgd { learning_rate: 1e-30 } } train { steps: 1 epochs: 1 }'
fixed() { echo "weight_attr { initializer { assign { value: [$1] } } } bias_attr { initializer { constant {} } }"; }

# Columns with means and deviations; scores ln 2, ln 5 and 0 share 8.
printf 'a,b,kind\n12,24,ant\n10,20,bee\n8,16,cow\n' >rows.csv
cat >rows.pbtxt <<EOF
model { input { name: "x" shape: [-1, 2] }
  layer { name: "same" linear { out_features: 2 $(fixed "1, 0, 0, 1") } }
  layer { name: "fc" linear { out_features: 3 $(fixed "0.6931471805599453, 0, 0, 0, 1.6094379124341003, 0") } } }
loss { label: "kind" cross_entropy {} }
data { train { csv { path: "rows.csv" field { name: "x" column: ["a", "b"] mean: [10, 20] std: [2, 4] }
    field { name: "kind" column: "kind" categories {} } } batch_size: 3 } }
$still
EOF
"$bin/pd-train" -c rows.pbtxt --out rows >/dev/null 2>err || fail "rows: $(cat err)"
array x '<f4' '2, 2' '\x00\x00\x40\x41\x00\x00\xc0\x41\x00\x00\x20\x41\x00\x00\xa0\x41'     # 12, 24; 10, 20
array odds '<f4' '2, 3' '\x00\x00\x80\x3e\x00\x00\x20\x3f\x00\x00\x00\x3e\xab\xaa\xaa\x3e\xab\xaa\xaa\x3e\xab\xaa\xaa\x3e'
for to in onnx paddle paddle-legacy; do
  model=whole-$to
  [ $to != onnx ] || model=whole.onnx
  pd_export -m rows --to $to -o $model --with-transforms --with-softmax --output-name odds
  answers $model x odds
  inspect $model >json
  grep -q '"outputs":\[{"name":"odds",' json || fail "$to: the output's name: $(cat json)"
  grep -q '"class_count":3,"classes":"ant, bee, cow"' json || fail "$to: the classes: $(cat json)"
done
# What ONNX's readers find.
grep -qa 'classes_output.*odds' whole.onnx || fail "ONNX metadata"
grep -qaF '["ant","bee","cow"]' whole.onnx || fail "ONNX metadata"
# Once more exported, and quantized, the classes are still there.
pd_export -m whole-paddle --to onnx -o again.onnx
inspect again.onnx | grep -q '"classes":"ant, bee, cow"' || fail "a model that is exported again"
"$bin/pd-quant" -q -m whole-paddle --weight-only -o q8 >/dev/null 2>err || fail "pd-quant: $(cat err)"
inspect q8 | grep -q '"classes":"ant, bee, cow"' || fail "a quantized model"
pd_export -m rows -o checked --with-transforms --verify x.npz

# Without options: the layer's name; or another layer's.
pd_export -m rows --to onnx -o plain.onnx
inspect plain.onnx | grep -q '"outputs":\[{"name":"fc",' || fail "the layer's name: $(inspect plain.onnx)"
pd_export -m rows --fetch same,fc --output-name hidden,score -o two
inspect two | grep -q '"outputs":\[{"name":"hidden",.*{"name":"score",' || fail "two outputs: $(inspect two)"
# Classes come from the model where no run is near.
mkdir alone && cp rows.pbtxt alone/
printf 'a,b\n12,24\n' >new.csv
"$bin/pd-eval" -q --predict -m plain.onnx -c alone/rows.pbtxt new.csv >out 2>err || fail "prediction: $(cat err)"
printf 'line,class,probability\n2,bee,0.625\n' | diff - out || fail "classes of the model"
refused "2 names are given for 1 outputs, 'fc'" -m rows -o no --output-name a,b
refused "another variable of the model has this name" -m rows -o no --output-name x
refused "--to dot draws it as it is" -m rows --to dot -o no --with-softmax
refused "export the run" -m checked -o no --with-softmax
refused "export the run" -m checked -o no --with-transforms
[ ! -e no.pdmodel ] || fail "a refused export wrote something"

# Pixels: rgb of one, two channels at a time; e^1 / (e^1 + 2 e^-1) = 0.786986.
picture() { mkdir -p "$(dirname "$1")" && printf 'P6 1 1 255\n%b' "$2" >"$1"; }
picture shots/red/1.ppm '\xff\x00\x00'
picture shots/green/1.ppm '\x00\xff\x00'
picture shots/blue/1.ppm '\x00\x00\xff'
cat >colours.pbtxt <<EOF
model { input { name: "image" shape: [-1, 3, 1, 1] } layer { name: "flat" flatten {} }
  layer { name: "score" linear { out_features: 3 $(fixed "0, 0, 1, 0, 1, 0, 1, 0, 0") } } }
loss { cross_entropy {} }
data { train { dataset_folder { root: "shots" } transform { to_tensor {} }
  transform { normalize { mean: [0.5, 0.5, 0.5] std: [0.5, 0.5, 0.5] } } batch_size: 3 } }
$still
EOF
"$bin/pd-train" -c colours.pbtxt --out colours >/dev/null 2>err || fail "colours: $(cat err)"
array image '|u1' '2, 1, 1, 3' '\xff\x00\x00\x00\xff\x00'
# red is class 2, green 1: 0.786986 and twice 0.106507.
big='\xeb\x77\x49\x3f' small='\x55\x20\xda\x3d'
array probabilities '<f4' '2, 3' "$small$small$big$small$big$small"
for model in pixels pixels.onnx; do
  to=paddle
  [ $model = pixels ] || to=onnx
  pd_export -m colours --to $to -o $model --with-transforms --with-softmax
  answers $model image probabilities
  inspect $model | grep -q '"inputs":\[{"name":"image","shape":\[-1,1,1,3\],"dtype":"uint8"' || fail "the input: $(inspect $model)"
done

# Yes or no is a sigmoid; numbers are no classes; hashes stay outside.
printf 'who,y\nanna,1\nbert,0\n' >clicks.csv
cat >clicks.pbtxt <<EOF
model { input { name: "ids" shape: [-1, 1] dtype: int64 }
  layer { embedding { num_embeddings: 10 embedding_dim: 1 } } layer { name: "logit" flatten {} } }
loss { label: "y" bce_with_logits_loss {} }
data { train { csv { path: "clicks.csv" field { name: "ids" column: "who" hash_buckets: 10 } field { name: "y" column: "y" } } batch_size: 2 } }
$still
EOF
"$bin/pd-train" -c clicks.pbtxt --out clicks >/dev/null 2>err || fail "clicks: $(cat err)"
pd_export -m clicks -o clicked --with-softmax --with-transforms
grep -q "its numbers are hashes of texts; PaddlePaddle's operator 'hash' is another" err || fail "no word of the hash: $(cat err)"
inspect clicked | grep -q '"outputs":\[{"name":"probability",' || fail "yes or no: $(inspect clicked)"
inspect clicked | grep -q '"sigmoid":1' || fail "yes or no: $(inspect clicked)"
sed 's/loss {.*/loss { label: "y" mse_loss {} }/' clicks.pbtxt >numbers.pbtxt
refused "make no classifier" -c numbers.pbtxt -o no --with-softmax

# Layers of a network whose evaluation differs are those of evaluation: the code
# is the mean there, double is not trained and noisy not evaluated.
printf 'a,b,y\n1,2,3\n4,5,6\n' >halves.csv
cat >halves.pbtxt <<EOF
model { input { name: "x" shape: [-1, 2] }
  layer { name: "mean" linear { out_features: 2 $(fixed "1, 0, 0, 1") } }
  layer { name: "std" exp {} }
  layer { name: "noisy" when: train normal { mean_of: "mean" std_of: "std" } }
  layer { name: "code" normal { mean_of: "mean" std_of: "std" in_evaluation: mean } }
  layer { name: "double" when: eval input: "code" scale { scale: 2 } }
  layer { name: "made" input: "code" linear { out_features: 1 $(fixed "10, 1") } } }
loss { label: "y" mse_loss {} }
data { train { csv { path: "halves.csv" field { name: "x" column: ["a", "b"] } field { name: "y" column: "y" } } batch_size: 2 } }
$still
EOF
"$bin/pd-train" -c halves.pbtxt --out halves >/dev/null 2>err || fail "halves: $(cat err)"
array x '<f4' '1, 2' '\x00\x00\x80\x3f\x00\x00\x00\x40'       # 1, 2
array code '<f4' '1, 2' '\x00\x00\x80\x3f\x00\x00\x00\x40'
array double '<f4' '1, 2' '\x00\x00\x00\x40\x00\x00\x80\x40'  # 2, 4
array made '<f4' '1, 1' '\x00\x00\x40\x41'                      # 12
for name in code double made; do
  pd_export -m halves --fetch $name -o half
  inspect half | grep -q "\"outputs\":\[{\"name\":\"$name\"," || fail "output $name: $(inspect half)"
  answers half x $name
  # pd-eval takes and gives the names of layers, too.
  "$bin/pd-eval" -q -m halves --feed x.npz --fetch $name --expect $name.npz >out 2>err || fail "--fetch $name: $(cat out err)"
done
pd_export -m halves --input code=-1,2 --fetch made -o decoder
inspect decoder | grep -q '"inputs":\[{"name":"code","shape":\[-1,2\]' || fail "the input: $(inspect decoder)"
answers decoder code made
pd_export -m halves --method 'encode=code' --method 'decode=made from code' -o halved
answers halved.encode x code
answers halved.decode code made
# other MESSAGE TOOL ARGUMENT...: fails and says so.
other() {
  local got=0
  "$bin/$2" "${@:3}" >out 2>err || got=$?
  [ $got -ne 0 ] || fail "$2 ${*:3} is taken"
  grep -qF -- "$1" err || fail "$2 ${*:3} says: $(cat err)"
}
other "--fetch: 'noisy' is neither a layer nor a variable of the network as evaluation runs it; it is a layer of training alone" pd-export -m halves --fetch noisy -o no
other "'cod' is neither a layer nor a variable of the network as evaluation runs it; the nearest layer is 'code'" pd-eval -m halves --feed x.npz --fetch cod
other "'mean' and 'code' are one variable of the network as evaluation runs it; name one of them" pd-export -m halves --fetch mean,code -o no

# A network that ends in a table it lends to heads, as BERT does, gives what a
# further layer would read.
cat >bert.pbtxt <<EOF
model { input { name: "ids" shape: [-1, 5] dtype: int64 } input { name: "segments" shape: [-1, 5] dtype: int64 }
  layer { name: "net" input: ["ids", "segments"] block { use: "bert" set: ["vocab_size=7", "hidden_size=8",
    "num_hidden_layers=1", "num_attention_heads=2", "intermediate_size=8", "max_position_embeddings=8"] } } }
EOF
pd_export -c bert.pbtxt -o bert
grep -q 'inputs ids, segments, outputs net/encoder$' out || fail "bert: $(cat out)"
