#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dataset_jobs_test.sh BIN TESTDATA: two steps of training on each of
# PaddlePaddle's data sets in its original layout, and what archives that are
# wrong are told.
set -euo pipefail

export PATH=$1:$PATH
sets=$2/datasets
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
cd "$top"
failures=0

fail() {
  echo "FAILED: $1" >&2
  sed 's/^/  | /' err.txt >&2
  failures=$((failures + 1))
}

# runs NAME: two steps of the job NAME.pbtxt.
runs() {
  timeout 120 pd-train -q -c "$1.pbtxt" --steps 2 --out "run_$1" \
    >out.txt 2>err.txt </dev/null || fail "$1"
}

# refused NAME PATTERN OVERRIDE...: exit status 3, and a message.
refused() {
  local name=$1 pattern=$2 got=0
  shift 2
  local overrides=()
  for override; do overrides+=(-o "$override"); done
  timeout 60 pd-train -q -c "$name.pbtxt" --steps 1 --out new "${overrides[@]}" \
    >out.txt 2>err.txt </dev/null || got=$?
  if [ $got -ne 3 ] || ! grep -qE -- "$pattern" err.txt; then
    fail "$name $*: exit $got, expected 3 and '$pattern'"
  fi
}

# classifier NAME CLASSES TRANSFORMS DATA: of pictures.
classifier() {
  cat >"$1.pbtxt" <<J
model {
  input { name: "image" shape: [-1, 3, 8, 8] }
  layer { flatten {} }
  layer { linear { out_features: $2 } }
}
loss { cross_entropy {} }
optimizer { sgd { learning_rate: 0.01 } }
data { train { $4 transform { resize { size: [8, 8] } } $3
  transform { to_tensor {} } batch_size: 2 } }
J
  runs "$1"
}

classifier cifar10 10 'transform { brightness_transform { value: 0.4 } }
  transform { random_rotation { degrees: 20 fill: [1, 2, 3] } }' \
  "cifar10 { data_file: '$sets/cifar10/cifar-10-python.tar.gz' }"
classifier cifar100 100 'transform { hue_transform { value: [-0.1, 0.2] } }' \
  "cifar100 { data_file: '$sets/cifar100/cifar-100-python.tar.gz' mode: test }"
classifier flowers 103 'transform { contrast_transform { value: 0.4 } }
  transform { saturation_transform { value: 0.4 } }' "flowers {
  data_file: '$sets/flowers/102flowers.tgz'
  label_file: '$sets/flowers/imagelabels.mat'
  setid_file: '$sets/flowers/setid.mat' }"

cat >mnist.pbtxt <<J
model {
  input { name: "image" shape: [-1, 1, 28, 28] }
  layer { flatten {} }
  layer { linear { out_features: 10 } }
}
loss { cross_entropy {} }
optimizer { sgd { learning_rate: 0.01 } }
data { train { fashion_mnist { folder: "$2/mnist" mode: test }
  transform { to_tensor {} } batch_size: 2 } }
J
runs mnist

cat >voc2012.pbtxt <<J
model {
  input { name: "image" shape: [-1, 3, 6, 6] }
  layer { conv2d { out_channels: 21 kernel_size: 1 } }
}
loss { cross_entropy { axis: 1 ignore_index: 255 } }
optimizer { sgd { learning_rate: 0.01 } }
data { train { voc2012 { data_file: "$sets/voc2012/VOCtrainval_11-May-2012.tar" }
  transform { random_resized_crop { size: 6 } }
  transform { random_horizontal_flip {} } transform { to_tensor {} }
  batch_size: 2 } }
J
runs voc2012

cat >uci_housing.pbtxt <<J
model { input { name: "feature" shape: [-1, 13] } layer { linear { out_features: 1 } } }
loss { mse_loss {} label: "target" }
optimizer { sgd { learning_rate: 0.01 } }
data { train { uci_housing { data_file: "$sets/uci_housing/housing.data" } batch_size: 2 } }
J
runs uci_housing

cat >movielens.pbtxt <<J
model {
  input { name: "user_id" shape: [-1, 1] dtype: int64 }
  input { name: "title" shape: [-1, -1] dtype: int64 }
  layer { name: "user" input: "user_id" embedding { num_embeddings: 10 embedding_dim: 4 } }
  layer { name: "user_mean" mean { axis: 1 } }
  layer { name: "words" input: "title" embedding { num_embeddings: 20 embedding_dim: 4 } }
  layer { name: "title_mean" mean { axis: 1 } }
  layer { input: "user_mean" input: "title_mean" concat { axis: 1 } }
  layer { linear { out_features: 1 } }
}
loss { mse_loss {} label: "rating" }
optimizer { sgd { learning_rate: 0.01 } }
data { train { movielens { data_file: "$sets/movielens/ml-1m.zip" } batch_size: 3 } }
J
runs movielens

cat >imdb.pbtxt <<J
model {
  input { name: "doc" shape: [-1, -1] dtype: int64 }
  layer { embedding { num_embeddings: 40 embedding_dim: 4 } }
  layer { mean { axis: 1 } }
  layer { linear { out_features: 2 } }
}
loss { cross_entropy {} }
optimizer { sgd { learning_rate: 0.01 } }
data { train { imdb { data_file: "$sets/imdb/aclImdb_v1.tar.gz" cutoff: 1 } batch_size: 3 } }
J
runs imdb

cat >imikolov.pbtxt <<J
model {
  input { name: "words" shape: [-1, 2] dtype: int64 }
  layer { embedding { num_embeddings: 40 embedding_dim: 4 } }
  layer { flatten {} }
  layer { linear { out_features: 40 } }
}
loss { cross_entropy {} }
optimizer { sgd { learning_rate: 0.01 } }
data { train { imikolov { data_file: "$sets/imikolov/simple-examples.tgz"
  window_size: 3 min_word_freq: 1 } batch_size: 3 } }
J
runs imikolov

# tokens NAME INPUT LABEL DATA: a label for each word.
tokens() {
  cat >"$1.pbtxt" <<J
model {
  input { name: "$2" shape: [-1, -1] dtype: int64 }
  layer { embedding { num_embeddings: 40 embedding_dim: 4 } }
  layer { linear { out_features: 40 } }
}
loss { cross_entropy {} label: "$3" }
optimizer { sgd { learning_rate: 0.01 } }
data { train { $4 batch_size: 1 } }
J
  runs "$1"
}
tokens sentences src trg "imikolov { data_type: SEQ
  data_file: '$sets/imikolov/simple-examples.tgz' min_word_freq: 1 }"
tokens wmt14 trg_ids trg_ids_next \
  "wmt14 { data_file: '$sets/wmt14/wmt14.tgz' dict_size: 8 }"
tokens wmt16 trg_ids trg_ids_next "wmt16 {
  data_file: '$sets/wmt16/wmt16.tar.gz' src_dict_size: 9 trg_dict_size: 9 }"
tokens conll05st word_idx label "conll05st {
  data_file: '$sets/conll05st/conll05st-tests.tar.gz'
  word_dict_file: '$sets/conll05st/wordDict.txt'
  verb_dict_file: '$sets/conll05st/verbDict.txt'
  target_dict_file: '$sets/conll05st/targetDict.txt' }"

# Archives that are wrong: the archive, the member and the record are named.
at=data.train
refused cifar10 "none.tgz.*No such file" $at.cifar10.data_file=none.tgz
refused cifar10 "cifar-100-python.tar.gz' holds no member with 'data_batch'" \
  "$at.cifar10.data_file=$sets/cifar100/cifar-100-python.tar.gz"
refused cifar10 "data_batch_1': record 2: label is 7; expected 0 to 6" \
  $at.cifar10.num_classes=7
head -c 900 "$sets/cifar10/cifar-10-python.tar.gz" >cut.tgz
refused cifar10 "cut.tgz': .*gzip data is truncated" $at.cifar10.data_file=cut.tgz
refused flowers "imagelabels.mat' picture 1: label is 77; expected 1 to 60" \
  $at.flowers.num_classes=60
refused flowers "'.*imagelabels.mat' holds no array 'tstid'" \
  "$at.flowers.setid_file=$sets/flowers/imagelabels.mat"
refused flowers "wmt16.tar.gz' holds no member 'jpg/image_00007.jpg'" \
  "$at.flowers.data_file=$sets/wmt16/wmt16.tar.gz"
refused voc2012 "cut.tar': byte [0-9]+: .* archive ends" $at.voc2012.data_file=cut.tar \
  < <(head -c 9000 "$sets/voc2012/VOCtrainval_11-May-2012.tar" >cut.tar)
refused voc2012 "imdb.*holds no member 'VOCdevkit/VOC2012/ImageSets/Segmentation/trainval.txt'" \
  "$at.voc2012.data_file=$sets/imdb/aclImdb_v1.tar.gz"
head -c 1400 "$sets/uci_housing/housing.data" >short.data
refused uci_housing "short.data': it holds [0-9]+ numbers; expected 14 a record" \
  $at.uci_housing.data_file=short.data
sed '3s/\./?/' "$sets/uci_housing/housing.data" >x.data
refused uci_housing "x.data': line 3: '[0-9?.]+' is not a number" \
  $at.uci_housing.data_file=x.data
head -c 700 "$sets/movielens/ml-1m.zip" >cut.zip
refused movielens "cut.zip': not a whole zip" $at.movielens.data_file=cut.zip
refused imdb "holds no member like 'aclImdb/train/pos" \
  "$at.imdb.data_file=$sets/wmt14/wmt14.tgz"
refused imdb "holds no word more than 99 times \(cutoff\)" $at.imdb.cutoff=99
refused imikolov "holds no member 'simple-examples/data/ptb.train.txt'" \
  "$at.imikolov.data_file=$sets/wmt14/wmt14.tgz"
refused wmt14 "holds no member 'src.dict'" \
  "$at.wmt14.data_file=$sets/wmt16/wmt16.tar.gz"
refused wmt14 "first words of 'trg.dict' are without '<e>'" $at.wmt14.dict_size=1
refused wmt16 "wmt14.tgz' holds no member 'wmt16/train'" \
  "$at.wmt16.data_file=$sets/wmt14/wmt14.tgz"
refused conll05st "sentence from line 1: predicate 'sit' is not in '.*wordDict.txt'" \
  "$at.conll05st.verb_dict_file=$sets/conll05st/wordDict.txt"
echo B-A0 >few.txt
refused conll05st "label 'B-V' is not in '.*few.txt'" \
  $at.conll05st.target_dict_file=few.txt

# on_error: skip counts and names pictures that are damaged, missing, or of
# another size than their mask; the others are used.
# skips NAME COUNT PATTERN...: an epoch of the set leaves out so many.
skips() {
  local name=$1 count=$2
  shift 2
  rm -rf new
  timeout 60 pd-train -q -c "$name.pbtxt" --out new -o data.train.on_error=skip \
    "${overrides[@]}" >out.txt 2>err.txt </dev/null || fail "$name: exit $?"
  grep -q "data.train: $count records were left out" err.txt || fail "$name: not $count are left out"
  grep -q "\"records\":$count" new/log.jsonl || fail "$name: $count are not in the log"
  local pattern
  for pattern; do
    grep -qE -- "$pattern" err.txt || fail "$name: no word of '$pattern'"
  done
}
mkdir pictures
tar -xzf "$sets/flowers/102flowers.tgz" -C pictures
head -c 100 "$sets/../images/rgb_420.jpg" >pictures/jpg/image_00007.jpg
rm pictures/jpg/image_00001.jpg
tar -czf flowers.tgz -C pictures jpg
overrides=(-o "$at.flowers.data_file=flowers.tgz")
refused flowers "flowers.tgz' holds no member 'jpg/image_00001.jpg'" \
  $at.flowers.data_file=flowers.tgz
skips flowers 2 "flowers.tgz': member 'jpg/image_00007.jpg' \(record 0\): JPEG image: " \
  "flowers.tgz' holds no member 'jpg/image_00001.jpg'"
rm -rf pictures/jpg/*
tar -czf flowers.tgz -C pictures jpg
refused flowers "flowers.tgz': none of the [0-9]+ records could be read: .* holds no member" \
  $at.flowers.data_file=flowers.tgz $at.on_error=skip
tar -xf "$sets/voc2012/VOCtrainval_11-May-2012.tar" -C pictures
voc=pictures/VOCdevkit/VOC2012
mapfile -t names <$voc/ImageSets/Segmentation/trainval.txt
cp "$2/images/grey.jpg" "$voc/JPEGImages/${names[0]}.jpg"
echo x >"$voc/SegmentationClass/${names[1]}.png"
tar -cf voc.tar -C pictures VOCdevkit
overrides=(-o "$at.voc2012.data_file=voc.tar")
skips voc2012 2 "${names[0]}.jpg' \(record 0\): the picture is 16 x 17 pixels; " \
  "SegmentationClass/${names[1]}.png' \(record 1\): a mask must be a PNG image"

[ $failures -eq 0 ] || { echo "$failures failures" >&2; exit 1; }
